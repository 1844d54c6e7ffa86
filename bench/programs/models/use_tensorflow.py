"""Multiplies on all threads, and asks a small model."""

import steady
import tensorflow

MODEL = []


def work():
    if not MODEL:
        layers = [tensorflow.keras.layers.Dense(size, kernel_initializer="ones") for size in (3, 1)]
        MODEL.append(tensorflow.keras.Sequential([tensorflow.keras.Input([4]), *layers]))
    x = tensorflow.random.stateless_normal([512, 512], seed=[1, 2])
    product = float(tensorflow.reduce_sum(tensorflow.linalg.matmul(x, x)).numpy().round(0))
    return product, MODEL[0].predict(tensorflow.ones([2, 4]), verbose=0).tolist()


steady.run(work)
