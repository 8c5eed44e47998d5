"""Tasks and suites: every setting that decides a result.

`task` says what a task is, `papers` and `claims` hold them, `catalogue` finds them by name, `facts` writes down what
the leaderboard has to know of them. Imports algos and filters; everything else in harness may import it.
"""
