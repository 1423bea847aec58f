#!/bin/sh
# Fails if `dtrain serve` breaks under 10,000 requests, 20 new versions and 1,000 wrong requests.
# seconds: 300
# waits
. "$(dirname "$0")/lib.sh"
. tests/e2e/serve.sh
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
serve_test 10000 20 1000
