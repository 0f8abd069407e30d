#!/bin/bash
# Writes the reward, 0 to 1, of the file that the agent has left.
exec python3 -m servegym.harbor.grade /tests/grade.json /app /logs/verifier
