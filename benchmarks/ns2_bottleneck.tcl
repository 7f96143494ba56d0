# The benchmark's network in ns-2: one flow through a bottleneck, sender -- router -- receiver.
#
# ns ns2_bottleneck.tcl VARIANT RATE_MBIT RTT_MS START SECONDS LIMIT_PACKETS TRACE
#
# VARIANT is a congestion control of Agent/TCP/Linux.
#
# TRACE gets a line for every packet that is queued, sent, received or dropped, on both links and
# in both directions: what the captures are elsewhere. Prints how many segments were acknowledged.

lassign $argv variant rate_mbit rtt_ms start seconds limit trace_path

set segment 1448
set ns [new Simulator]
set trace [open $trace_path w]
$ns trace-all $trace

set sender [$ns node]
set router [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $router 1000Mb [expr $rtt_ms / 2.0]ms DropTail
$ns duplex-link $router $receiver ${rate_mbit}Mb 0.001ms DropTail
$ns queue-limit $sender $router 100000
# DropTail drops a packet that would fill its limit (queue/drop-tail.cc)
$ns queue-limit $router $receiver [expr $limit + 1]
$ns queue-limit $receiver $router 100000

set tcp [new Agent/TCP/Linux]
$tcp set packetSize_ $segment
$tcp set window_ 100000
$tcp set windowInit_ 10
$tcp set timestamps_ true
set sink [new Agent/TCPSink/Sack1/DelAck]
$sink set ts_echo_rfc1323_ true
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
$ns at 0 "$tcp select_ca $variant"
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at $start "$ftp start"
$ns at $seconds {
    puts [$tcp set ack_]
    close $trace
    exit 0
}
$ns run
