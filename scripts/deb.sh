#!/bin/sh
# Makes Debian packages of what `make install` installs: dtrain (program, manual, recipes), libdtrain0
# (shared library) and libdtrain-dev (headers, archive, Fortran module, examples), in build/deb. Built
# for any x86-64; the hot loops choose their instructions as the program starts.
#   scripts/deb.sh VERSION        called by `make deb`
set -eu
cd "$(dirname "$0")/.."
version=$1
out=build/deb
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
arch=$(dpkg --print-architecture)
rm -rf "$out/root" "$out"/*.deb
make --no-print-directory -j"$(nproc)" BUILD="$out/obj" ARCH=x86-64 CFLAGS='-O3 -g' \
    LDFLAGS='-Wl,-z,relro,-z,now' PREFIX=/usr LIBDIR="/usr/lib/$multiarch" \
    DESTDIR="$PWD/$out/root/all" install >"$out.log" 2>&1 || { tail -n 20 "$out.log" >&2; exit 1; }
all=$out/root/all

# move PACKAGE PATH...: from all files to the package's.
move() {
    package=$1
    shift
    for path; do
        mkdir -p "$out/root/$package/$(dirname "$path")"
        (cd "$all" && echo $path) | tr ' ' '\n' | while read -r file; do
            mv "$all/$file" "$out/root/$package/$(dirname "$path")/"
        done
    done
}
move libdtrain0 "usr/lib/$multiarch/libdtrain.so.*"
move libdtrain-dev "usr/lib/$multiarch/libdtrain.*" "usr/lib/$multiarch/pkgconfig" usr/include
mkdir -p "$out/root/libdtrain-dev/usr/share/doc/libdtrain-dev"
mv "$all/usr/share/dtrain/examples" "$out/root/libdtrain-dev/usr/share/doc/libdtrain-dev/"
mv "$all" "$out/root/dtrain"

# finish PACKAGE SECTION DEPENDS DESCRIPTION, and the long description on stdin.
finish() {
    root=$out/root/$1
    doc=$root/usr/share/doc/$1
    mkdir -p "$root/DEBIAN" "$doc" "$out/work/debian"
    rm -f "$doc/LICENSE"
    {
        echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
        printf 'Upstream-Name: dtrain\n\nFiles: *\n'
        sed -n 's/^Copyright (c) /Copyright: /p' LICENSE
        echo 'License: Expat'
        sed '1,/^Copyright/d; /./!d; s/^/ /' LICENSE
    } >"$doc/copyright"
    printf 'dtrain (%s) unstable; urgency=medium\n\n  * Release %s.\n\n -- %s  %s\n' "$version" \
        "$version" "$maintainer" "$(date -R -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}")" |
        gzip -9n >"$doc/changelog.gz"
    find "$root" -path '*/man/man*' -type f ! -name '*.gz' -exec gzip -9n {} +
    find "$root" -type f \( -name '*.so.*' -o -path '*/bin/*' \) -exec strip --strip-unneeded \
        --remove-section=.comment {} +
    find "$root" -name '*.a' -exec strip --strip-debug {} +
    find "$root" -type d -exec chmod 755 {} +
    printf 'Source: dtrain\n\nPackage: %s\nArchitecture: any\n' "$1" >"$out/work/debian/control"
    needs=$(cd "$out/work" && find "../root/$1" -type f \( -name '*.so.*' -o -path '*/bin/*' \) -print0 |
        xargs -0r dpkg-shlibdeps -O -l"../root/libdtrain0/usr/lib/$multiarch" 2>/dev/null |
        sed -n 's/^shlibs:Depends=//p')
    depends=$(printf '%s' "$needs${needs:+${3:+, }}$3")
    {
        printf 'Package: %s\nSource: dtrain\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' "$1" \
            "$version" "$arch" "$maintainer"
        printf 'Installed-Size: %s\nSection: %s\nPriority: optional\n' \
            "$(du -sk --exclude=DEBIAN "$root" | cut -f1)" "$2"
        [ -z "$depends" ] || echo "Depends: $depends"
        [ "$1" != dtrain ] || echo 'Recommends: gnuplot-nox'
        [ "$1" != libdtrain0 ] || echo 'Multi-Arch: same'
        echo "Description: $4"
        sed 's/^/ /; s/^ $/ ./'
    } >"$root/DEBIAN/control"
    if [ "$1" = libdtrain0 ]; then
        echo "libdtrain 0 libdtrain0 (>= $version)" >"$root/DEBIAN/shlibs"
        echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
    fi
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    chmod 644 "$root"/DEBIAN/*
    dpkg-deb --root-owner-group --build "$root" "$out/$1_${version}_$arch.deb" >/dev/null
    echo "$out/$1_${version}_$arch.deb"
}
# As Debian's own tools take them; else whoever made the last commit.
maintainer="${DEBFULLNAME:-$(git log -1 --format=%an)} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"
run='libopenblas0-pthread | libopenblas0, openmpi-bin'
finish libdtrain0 libs 'libopenblas0-pthread | libopenblas0' 'trainer of neural networks for CPU clusters (library)' <<'END'
dtrain trains neural networks and linear models on CPU clusters, with the
same bits at any number of ranks.

This package holds the shared library.
END
finish libdtrain-dev libdevel "libdtrain0 (= $version), libopenmpi-dev" \
    'trainer of neural networks for CPU clusters (development files)' <<'END'
dtrain trains neural networks and linear models on CPU clusters, with the
same bits at any number of ranks.

This package holds headers, the static library, a Fortran module's source and
examples in C, C++, Fortran and Python.
END
finish dtrain science "$run" 'trainer of neural networks for CPU clusters' <<'END'
dtrain trains neural networks and linear models on CPU clusters: one program,
started by mpirun or from a Slurm job, that reads tables, pictures and sparse
rows, trains on many ranks and hosts, saves, evaluates, exports, predicts and
serves. The weights of a run have the same bits at any number of ranks, and
over crashes and resumes.
END
