#!/usr/bin/env python3
"""Makes SavedModels for the tests of the Scala API, and what TensorFlow's Python answers to the same rows.

    build/tensorflow/bin/python tests/tensorflow/saved_models.py FOLDER

FOLDER gets `various` (tensorflow_session.Various), `linear` (y = 2x + 1), `steeper` (y = 3x + 1), `tags` (two
graphs of TensorFlow 1) and answers.json: {output of `typed`: its values for n = 0, 1, ...}.
"""

import json
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]

from tensorflow_session import Various, tf  # noqa: E402

ROWS = 103


def point(n):
    """Row n of the tests: what stands in column `point`."""
    return [n / 8, 1.0 - n]


class Linear(tf.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = tf.Variable(slope)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def serve(self, x):
        return {"y": tf.add(self.slope * x, 1.0, name="sum")}


def plain(values):
    return [plain(v) for v in values] if isinstance(values, list) else decoded(values)


def decoded(value):
    return list(value) if isinstance(value, bytes) else value


def answers(folder):
    typed = tf.saved_model.load(folder).signatures["typed"]
    x, ids = tf.constant([point(n) for n in range(ROWS)], tf.float32), tf.range(ROWS, dtype=tf.int64)
    return {name: plain(values.numpy().tolist()) for name, values in typed(x=x, id=ids).items()}


def tagged(folder):
    """y = w * factor * x, w = 2, with operations x and y; only the graph of one tag has a signature."""
    v1 = tf.compat.v1
    builder = v1.saved_model.Builder(folder)
    for tags, factor in ((["serve"], 1.0), (["serve", "big"], 10.0)):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None], "x")
            y = tf.multiply(x * v1.get_variable("w", initializer=2.0), factor, "y")
            tf.stack([x, y], 1, name="both")
            tf.unique_with_counts(tf.cast(x, tf.int64), name="unique")
            session.run(v1.global_variables_initializer())
            if len(tags) == 1:
                signature = v1.saved_model.predict_signature_def({"inp": x}, {"out": y})
                builder.add_meta_graph_and_variables(session, tags, {"predict": signature})
            else:
                builder.add_meta_graph(tags)
    builder.save()


def main(folder):
    various = Various()
    names = ("typed", "binary", "whole")
    tf.saved_model.save(various, f"{folder}/various", signatures={name: getattr(various, name) for name in names})
    for name, slope in (("linear", 2.0), ("steeper", 3.0)):
        linear = Linear(slope)
        tf.saved_model.save(linear, f"{folder}/{name}", signatures=linear.serve)
    tagged(f"{folder}/tags")
    pathlib.Path(folder, "answers.json").write_text(json.dumps(answers(f"{folder}/various")))


if __name__ == "__main__":
    main(sys.argv[1])
