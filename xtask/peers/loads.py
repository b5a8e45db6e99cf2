"""The load of majorities by quoracle: what `cargo xtask peers --lab` compares `quorate-lab quorum report` with.

Prints the load of majorities of so many nodes as JSON.
"""

import json
import sys

import quoracle

nodes = [quoracle.Node(str(i)) for i in range(int(sys.argv[1]))]
system = quoracle.QuorumSystem(writes=quoracle.majority(nodes))
print(json.dumps({"load": system.load(read_fraction=0)}))
