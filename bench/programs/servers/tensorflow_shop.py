"""A FastAPI application, ASGI `app`, that answers with what a model says.

The model is made when the server starts, as FastAPI advises: TensorFlow starts threads with the first one, and a thawed process has none.
"""

import contextlib

import fastapi
import tensorflow

MODEL = []


@contextlib.asynccontextmanager
async def lifespan(app):
    layers = [tensorflow.keras.layers.Dense(size, kernel_initializer="ones") for size in (512, 512, 10)]
    MODEL.append(tensorflow.keras.Sequential([tensorflow.keras.Input([64]), *layers]))
    yield


app = fastapi.FastAPI(lifespan=lifespan)


@app.get("/")
def answer():
    return MODEL[0](tensorflow.ones([1, 64])).numpy().tolist()
