. "$(dirname "${BASH_SOURCE[0]}")/.image-functions.sh"
version=$1; out=$2; machine=machine
need_source "$version"
lay_out $version machine
find_keys
tree=/tmp/tspeed/tree-$version
"$here/build.sh" "$recipe" "$tarball" $out $tree /tmp/tspeed/build-$version.log "linux-source-$version $packaged"
echo "$base" > $out/base
(cd $out && sha256sum linux config version base >sha256)
echo "$cache/$key"
