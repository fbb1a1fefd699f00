"""Writes the table that examples/jobs/gcn.yaml trains on: a row a member, one column each, and the side it took."""

SIDES = "0000000001000011001010111111111111"  # 0: with Mr. Hi, 1: with the officers

for member, side in enumerate(SIDES):
    print(",".join("1" if column == member else "0" for column in range(len(SIDES))) + f",{side}")
