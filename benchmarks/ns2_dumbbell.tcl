# The six-node dumbbell: TCP flows and CBR across links of 10 Mbit/s with queues of ten packets.
#
#     n1 ──┐                 ┌── n4        every link 10 Mbit/s, MIDDLE_MS or ACCESS_MS
#          ├── n2 ══════ n3 ─┤
#     n5 ──┘                 └── n6
#
# ns ns2_dumbbell.tcl SEED QUEUE MIDDLE_MS ACCESS_MS WINDOW TCP CBR SECONDS TRACE
#
# TCP is a list of {agent sink source target start}, CBR one of {source target Mbit/s start stop}.
# TRACE gets the packets sent by n1 and n5, queued and dropped before n2-n3, received by n4 and n6,
# and the ACKs that n1 and n5 receive. All other settings are ns-2's defaults.

lassign $argv seed queue middle_ms access_ms window tcp_flows cbr seconds trace_path

set ns [new Simulator]
$defaultRNG seed $seed
set trace [open $trace_path w]
foreach name {n1 n2 n3 n4 n5 n6} {
    set $name [$ns node]
}
foreach {one other type ms} [list n1 n2 DropTail $access_ms n5 n2 DropTail $access_ms \
        n2 n3 $queue $middle_ms n3 n4 DropTail $access_ms n3 n6 DropTail $access_ms] {
    $ns duplex-link [set $one] [set $other] 10Mb ${ms}ms $type
    $ns queue-limit [set $one] [set $other] 10
    $ns queue-limit [set $other] [set $one] 10
}
foreach {from to} [list $n1 $n2 $n5 $n2 $n2 $n3 $n3 $n4 $n3 $n6 $n2 $n1 $n2 $n5] {
    $ns trace-queue $from $to $trace
}

set number 0
foreach flow $tcp_flows {
    lassign $flow agent sink source target start
    incr number
    set tcp [new Agent/TCP$agent]
    $tcp set window_ $window
    $tcp set packetSize_ 1000
    $tcp set fid_ $number
    set receiver [new Agent/TCPSink$sink]
    $ns attach-agent [set $source] $tcp
    $ns attach-agent [set $target] $receiver
    $ns connect $tcp $receiver
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at $start "$ftp start"
}

lassign $cbr source target mbit start stop
set udp [new Agent/UDP]
$udp set fid_ 9
set null [new Agent/Null]
$ns attach-agent [set $source] $udp
$ns attach-agent [set $target] $null
$ns connect $udp $null
set load [new Application/Traffic/CBR]
$load set packetSize_ 1000
$load set rate_ ${mbit}Mb
$load set random_ 1
$load attach-agent $udp
$ns at $start "$load start"
$ns at $stop "$load stop"

$ns at $seconds {
    $ns flush-trace
    close $trace
    exit 0
}
$ns run
