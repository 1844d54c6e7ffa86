"""The model, loaded when this module is: what an image holds of it needs no loading any more."""

import pathlib
import pickle

MODEL = pickle.loads(pathlib.Path(__file__).with_name("model.pickle").read_bytes())


def read_digit(pixels: list[float]) -> int:
    """The digit that is seen in a picture of 8 x 8 pixels, each from 0 to 16."""
    return int(MODEL.predict([pixels])[0])
