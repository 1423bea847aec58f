#!/bin/sh
# Debian packages from the tarball of `make dist`, in build/deb: dtrain (program, manual, recipes),
# libdtrain0.3 (shared library), libdtrain-dev (headers, archive, Fortran module, examples).
#   scripts/packaging/deb.sh TARBALL VERSION        called by `make deb`; needs debhelper
set -eu
out=$PWD/build/deb
maintainer="${DEBFULLNAME:-$(git log -1 --format=%an)} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"
date=$(git log -1 --format=%cD)
rm -rf "$out"
mkdir -p "$out"
tar -xf "$1" -C "$out"
cd "$out/dtrain-$2"
mv scripts/packaging/debian .
# The name as it is, also with what sed would take for its own.
maintainer="$maintainer" awk \
    '/^Maintainer:/ { $0 = "Maintainer: " ENVIRON["maintainer"] } { print }' debian/control >control
mv control debian/control
printf 'dtrain (%s) unstable; urgency=medium\n\n  * Release %s.\n\n -- %s  %s\n' "$2" "$2" \
    "$maintainer" "$date" >debian/changelog
{
    echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
    printf 'Upstream-Name: dtrain\n\nFiles: *\n'
    sed -n 's/^Copyright (c) /Copyright: /p' LICENSE
    echo 'License: Expat'
    sed '1,/^Copyright/d; /./!d; s/^/ /' LICENSE
} >debian/copyright
DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -b -us -uc \
    >"$out.log" 2>&1 || { tail -n 20 "$out.log" >&2; exit 1; }
ls "$out"/*.deb
