"""What comes from the decoder's process, and where it is kept: batches, columns, frames."""
