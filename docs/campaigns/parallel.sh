#!/bin/sh
# Eight parts on the cores of this machine (or, with --sshlogin, of several that share the folder).
# Parts that were interrupted go on; 75 is retried, 1 and 2 are not worth it.
set -e
parallel --retries 3 quorate-lab sim seeds --count 1000 --shard {}/8 --out parts --resume ::: 1 2 3 4 5 6 7 8
quorate-lab merge parts
