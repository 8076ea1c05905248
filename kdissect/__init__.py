"""kdissect: the network protocol analyzer for Apache Kafka."""

__version__ = "0.1.0"
