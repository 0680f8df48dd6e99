#!/usr/bin/env bash
# From a prompt to a vetted kernel on a machine with no GPU and no key: builds Assay and lets it generate one kernel from a
# transcript that was written by hand, three wrong attempts and a right one. Complete on a fresh Debian 12 or Ubuntu 24.04 machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/setup.sh

install_packages "${ASSAY_PACKAGES[@]}"
provide_cuda
build release assay assay-worker
say "build/release/bin/assay generate embedding_rmsnorm_backward $*"
exec build/release/bin/assay generate embedding_rmsnorm_backward "$@"
