"""Which columns and rows a query needs, and what its plan says of captures.

A Python data source learns no columns from Spark (4.1 to 4.3; SPARK-51713). It learns filters in a way that
loses rows: Spark keeps those of one query for the next query of the same DataFrame. So kdissect gives the
session a rule for its optimizer, ``CaptureScans.java``, through ``experimental.extraOptimizations``, Spark's
own interface for rules. Janino, which Spark ships to compile its generated code, compiles the rule. Workers
need nothing. :mod:`kdissect.spark.pushed` says which filters the rule passes on.

With Spark Connect, or a Spark with other classes, there is no rule. The source then makes all columns and
rows, and plans show its name only. Rows are the same.
``spark.sql.optimizer.excludedRules=kdissect.CaptureScans`` turns the rule off.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kdissect.spark.pushed import BODIES, KNOWN
from kdissect.spark.spark_errors import is_of_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULE = "kdissect.CaptureScans"
"""The name of the rule's class."""
_COMPILED: dict[str, Any] = {}
"""The class, by Spark's name of the application: each driver has one at a time. None if this Spark cannot
compile it."""


def give_rule(spark: SparkSession) -> None:
    """Give a session the rule, if it has a JVM that takes it."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return
    try:
        _give(spark)
    except Exception as error:
        # To py4j, a class that is not there is a package, which cannot be called.
        if not is_of_spark(error) and not isinstance(error, TypeError):
            raise


def _give(spark: SparkSession) -> None:
    experimental = spark._jsparkSession.experimental()
    rules = experimental.extraOptimizations()
    if any(rules.apply(at).ruleName() == RULE for at in range(rules.size())):
        return
    compiled = _compiled(spark)
    if compiled is not None:
        given = (",".join(KNOWN), ",".join(sorted(BODIES)))
        gateway: Any = spark.sparkContext._gateway
        parameters = gateway.new_array(gateway.jvm.java.lang.Object, len(given))
        for at, each in enumerate(given):
            parameters[at] = each
        rule = compiled.getConstructors()[0].newInstance(parameters)
        getattr(experimental, "extraOptimizations_$eq")(rules.appended(rule))


def _compiled(spark: SparkSession) -> Any:
    name = str(spark.sparkContext.applicationId)
    if name not in _COMPILED:
        _COMPILED.clear()
        _COMPILED[name] = None  # if it fails, it is not tried again
        java: Any = spark._jvm
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(java.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(_source())
        _COMPILED[name] = compiler.getClassLoader().loadClass(RULE)
    return _COMPILED[name]


def _source() -> str:
    return files("kdissect.spark").joinpath("CaptureScans.java").read_text("utf-8")
