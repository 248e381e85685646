"""Data frames as they are fed."""


def plain(data):
    """A DataFrame whose vectors of Spark ML are arrays; what has none, and an RDD, as it is."""
    if not hasattr(data, "schema"):
        return data
    vectors = {field.name for field in data.schema.fields if field.dataType.simpleString() == "vector"}
    if not vectors:
        return data
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions

    def column(name):
        found = functions.col("`" + name.replace("`", "``") + "`")
        return vector_to_array(found).alias(name) if name in vectors else found

    return data.select([column(name) for name in data.columns])
