"""Fits a forest on two threads, and a regression."""

import steady
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression


def work():
    x, y = make_classification(n_samples=500, n_features=20, random_state=1)
    forest = RandomForestClassifier(n_estimators=20, random_state=1, n_jobs=2).fit(x, y)
    return forest.score(x, y), LogisticRegression().fit(x, y).coef_.round(6).tolist()


steady.run(work)
