# The test of Fall and Floyd (1996): one FTP, S1 -- R1 -- K1, and exactly these packets lost.
#
# ns ns2_fall_floyd.tcl AGENT SINK SETTINGS DROPS SECONDS PACKETS STATE
#
# SETTINGS are the sender's, `name value ...`; DROPS are sequence numbers, the first is 0.
# PACKETS gets ns-2's trace of every link; STATE gets lines that end in a variable's name and
# its value, and begin with the time.

lassign $argv agent sink settings drops seconds packets_path state_path

set ns [new Simulator]
set packets [open $packets_path w]
set state [open $state_path w]
$ns trace-all $packets

set s1 [$ns node]
set r1 [$ns node]
set k1 [$ns node]
$ns duplex-link $s1 $r1 8Mb 0.1ms DropTail
$ns duplex-link $r1 $k1 0.8Mb 100ms DropTail
foreach {from to} [list $s1 $r1 $r1 $s1 $r1 $k1 $k1 $r1] {
    $ns queue-limit $from $to 1000
}

# The list counts what passes the link, from 0. Until the last drop nothing is sent twice, so
# these are the sequence numbers; that they were is for the reader of PACKETS to check.
set losses [new ErrorModel/List]
$losses unit pkt
$losses droplist $drops
$ns lossmodel $losses $r1 $k1

set tcp [new Agent/TCP$agent]
foreach {name value} $settings {
    $tcp set $name ;# an error if there is no such setting; ns-2 would create it
    $tcp set $name $value
}
$ns attach-agent $s1 $tcp
set receiver [new Agent/TCPSink$sink]
$ns attach-agent $k1 $receiver
$ns connect $tcp $receiver
set ftp [new Application/FTP]
$ftp attach-agent $tcp

proc tell {name value} {
    global ns state
    puts $state [format "%.5f %s %s" [$ns now] $name $value]
}

# tcp.cc, rtt_update() and rtt_timeout(): srtt_ is eight times, rttvar_ four times the ticks.
# ns-2's own trace rounds them. They change with ACKs, which are 10.4 ms apart.
proc tell_rto {} {
    global ns tcp
    if {[$tcp set srtt_] > 0} {
        set rto [expr (([$tcp set srtt_] >> 3) + [$tcp set rttvar_]) * [$tcp set tcpTick_]]
        tell rto [expr max($rto, [$tcp set minrto_]) * [$tcp set backoff_]]
    }
    $ns at [expr [$ns now] + 0.01] tell_rto
}

proc finish {} {
    global tcp packets state
    foreach name {nrexmit_ nrexmitpack_ ncwndcuts_} {
        tell $name [$tcp set $name]
    }
    close $packets
    close $state
    exit 0
}

$tcp attach $state
$tcp trace ssthresh_
$ns at 0 "$ftp start"
$ns at 0 tell_rto
$ns at $seconds finish
$ns run
