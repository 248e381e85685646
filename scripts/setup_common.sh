# Shared by setup-*.sh, in a checkout as in a distribution (scripts/dist): where data/ is, and which executable converts.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DATA=${CREMA_DATA_DIR:-$(dirname "$HERE")/data}
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Prints the executable's path.
find_crema() {
  local file
  for file in "${CREMA_BINARY:-}" "$HERE/../bin/crema" "$HERE/../build/release/cli/crema"; do
    if [ -n "$file" ] && [ -x "$file" ]; then echo "$file"; return; fi
  done
  fail "there is no executable crema in ../bin or ../build/release/cli; \`make dist\` lays it out, CREMA_BINARY names another"
}
