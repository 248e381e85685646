"""Where Spark looks for the Python side of com.crema's classes when it reads a pipeline; import them from crema.ml."""
