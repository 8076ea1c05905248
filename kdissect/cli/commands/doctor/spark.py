"""``kdissect doctor spark``: where the pipeline can run, and what it needs there."""

from __future__ import annotations

HOW_TO = """\
Driver and workers need kdissect, the same minor version of Python, and the captures, under the same names.
A machine cannot find a file that has another path there: use a share, or s3://, gs://, abfss://, hdfs://.

This machine      kdissect with its extra spark, beside Java 17 or newer; spark-local brings a Java.
                    kdissect spark batch CAPTURES --out TABLES
Standalone        kdissect at the same path on every worker, or an archive (below).
                    … --master spark://HOST:7077 --conf spark.pyspark.python=/opt/kdissect/bin/python
                    … --master spark://HOST:7077 --conf spark.archives=kdissect.tar.gz#environment
                      --conf spark.pyspark.python=./environment/bin/python
YARN              an archive (below), and HADOOP_CONF_DIR. The driver is here: deploy mode is client.
                    … --master yarn --conf spark.archives=kdissect.tar.gz#environment
                      --conf spark.pyspark.python=./environment/bin/python
Kubernetes        an image of Spark with kdissect in it, captures in an object store or a volume, and a driver
                  that executors reach: run it in a pod.
                    … --master k8s://https://HOST:6443 --conf spark.kubernetes.container.image=IMAGE
                      --conf spark.pyspark.python=/opt/kdissect/bin/python
Spark Connect     kdissect with its extra spark-connect; the server has kdissect and the captures. No stream.
                    … --master sc://HOST:15002
Another session   kdissect.spark.exchanges(spark, PATHS, pushdown=False) in a notebook or a job. If the
                  platform brings PySpark, install kdissect without the extra.

kdissect spark pack -o kdissect.tar.gz writes an archive for workers that have nothing but Python of the same
minor version. They need the same operating system and the same kind of processor as this machine.
A relative spark.pyspark.python exists on the workers only. Without pushdown=False, Spark also looks for it on
the driver, to plan the query. --scratch names a folder that all machines share, for progress.
kdissect doctor spark --cluster MASTER --path CAPTURES --path TABLES runs a small job there. It says which
workers lack kdissect, have another version, or do not reach a path.
Workers write the tables into --out, so driver and workers must share that folder too. If they do not, as with
Spark Connect, or if pyarrow cannot write there, Spark writes the tables. That takes more memory and time.

Tried: this machine, a standalone cluster, Spark Connect, s3://, hdfs:// (with the extra hdfs, and without
Kerberos). Not tried: YARN, Kubernetes, gs://, abfss://.
"""
