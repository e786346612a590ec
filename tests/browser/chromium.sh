#!/bin/sh
# Debian's chromium and a font with Japanese characters, unless they are here. Playwright's own builds of browsers are not used.
# CHROMIUM names the executable of another Chromium.
set -eu
missing=
command -v "${CHROMIUM:-chromium}" >/dev/null || missing=chromium
command -v fc-list >/dev/null && fc-list :lang=ja family | grep -q . || missing="$missing fonts-noto-cjk fontconfig"
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "make test-web needs these packages, and only root can install them by apt-get: $missing" >&2
    echo "Install them, or set CHROMIUM to the executable of a Chromium, and run make test-web again." >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# Split on purpose: one word per package.
# shellcheck disable=SC2086
apt-get install -qq --no-install-recommends $missing >/dev/null
