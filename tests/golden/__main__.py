"""Write the golden files anew."""

import json

from tests.golden import COUNTS, PACKAGED, REAL, operations, texts

for path, text in texts():
    path.write_text(text)
table = {name: operations(name) for name in (*PACKAGED, *REAL)}
COUNTS.write_text(json.dumps(table, indent=1) + "\n")
