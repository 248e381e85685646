from crema.ml import CaffeEstimator, CaffeModel  # noqa: F401
