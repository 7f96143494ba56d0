#!/bin/sh
# Runs a command in a guest whose kernel looks for its own errors, and then brings what the kernel has
# to say (debug_kernel.py): its log in the file LOG, and GCOV's counts for net/ipv4 in the folder COVERAGE.
#
#     sh with_log.sh LOG COVERAGE COMMAND ARGUMENT...
#
# kmemleak counts as leaked what is 5 s old and nothing points to, and only in a second scan after that
# what it has not doubted in the first one.
log=$1 coverage=$2 debug=/sys/kernel/debug leaks=/dev/null
shift 2
"$@"
status=$?
mount -t debugfs none $debug
if [ -e $debug/kmemleak ]; then
    sleep 6
    echo scan >$debug/kmemleak
    echo scan >$debug/kmemleak
    leaks=$debug/kmemleak
fi
{
    dmesg
    cat "$leaks"
} >"$log"
if [ -e $debug/gcov ]; then
    mkdir "$coverage"
    find $debug/gcov -path '*/net/ipv4/*.gcda' -exec cp -t "$coverage" {} +
fi
exit $status
