"""A broker's log directories: folders of partitions, their segments, indexes, snapshots and checkpoints."""
