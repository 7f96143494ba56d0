"""Active queue management: a large buffer whose queue stays short.

    sudo python3 aqm.py                or, without root: testbed mininet aqm.py

Two senders share 10 Mbit/s with a round trip of 40 ms. The buffer holds 200 packets, 240 ms, in
each case. PIE and CoDel drop before it is full. FQ-CoDel gives every flow its own queue, so that a
ping does not wait for the others at all.
"""

from __future__ import annotations

from dumbbell import dumbbell, mean_rtt_ms, transfer

for queue in ("pfifo", "pie", "codel", "fq_codel"):
    with dumbbell("10mbit", f"{queue} limit 200", rtts_ms=(40, 40)) as net:
        goodputs, ping = transfer(net, ["cubic", "cubic"], seconds=30)
        print(f"{queue}: {sum(goodputs):.3f} Mbit/s together, mean RTT {mean_rtt_ms(ping):.1f} ms")
