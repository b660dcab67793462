#!/usr/bin/env python3
"""A policy of your own: one observation a line on standard input, one decision a line on standard output.

This one rents spot nodes and meets on demand what spot does not give, like `spot-first`, and asks for one more node
while it is behind the deadline. `ganymede example policy` prints this file; docs/policies.md lists the fields.
"""
import json
import sys

for line in sys.stdin:
    seen = json.loads(line)
    pools = seen["pools"]
    wanted = max(1, sum(pool["requested"] for pool in pools.values()))
    if seen["deadline_s"] and seen["rate_per_s"] > 0:
        finish = seen["now_s"] + seen["left"] / seen["rate_per_s"]
        if finish > 0.95 * seen["deadline_s"]:
            wanted += 1
    nodes = {}
    missing = wanted
    for name, pool in sorted(pools.items(), key=lambda item: item[1]["usd_per_hour"]):
        refused = pool["waiting"] > 0 and pool["refused_for_s"] > 300
        have = pool["ready"] + pool["starting"]
        # A pool that refuses keeps one request open, so that it is noticed when it comes back.
        nodes[name] = min(pool["most"], have + 1 if refused else missing)
        missing = max(0, missing - (have if refused else nodes[name]))
    print(json.dumps({"nodes": nodes, "elastic": True}), flush=True)
