"""Trains a model that reads handwritten digits, and writes it to model.pickle, where serve.py takes it from."""

import pathlib
import pickle

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

digits, labels = load_digits(return_X_y=True)
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)).fit(digits, labels)
pathlib.Path(__file__).with_name("model.pickle").write_bytes(pickle.dumps(model))
