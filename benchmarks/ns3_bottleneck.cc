// The testbed's benchmark network in ns-3.37, to compare with:
//
//     sender ---- router ==== receiver
//        fast link    bottleneck
//
// TCP flows, one of Cubic unless told, a drop-tail queue with a limit in packets, captures of whole
// headers at the four interfaces. Prints one line of JSON.

#include <cstdint>
#include <iostream>
#include <queue>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr std::uint16_t PORT = 5201;
constexpr std::uint32_t SEGMENT_BYTES = 1448;          // 1500 less IP, TCP and timestamps
constexpr std::uint32_t SOCKET_BUFFER_BYTES = 16 << 20; // never what limits the flow
constexpr std::uint32_t SNAPLEN_BYTES = 144;           // as the testbed's captures
constexpr double FAST_MBIT = 1000;
constexpr std::uint32_t FAST_LINK_PACKETS = 10000;

struct Options {
    double rateMbit = 10;
    double rttMs = 60;
    double seconds = 60;
    std::uint16_t flows = 1;
    double start = 0;  // of the first one, in s
    double spread = 0; // seconds over which they start
    double from = 0;   // when what is printed begins, in s
    std::uint32_t limitPackets = 66;
    std::string variant = "TcpCubic";
    std::string pcap; // prefix of the captures; none when empty
};

Options parse(int argc, char* argv[]) {
    Options options;
    CommandLine line(__FILE__);
    line.AddValue("rate", "the bottleneck's rate in Mbit/s", options.rateMbit);
    line.AddValue("rtt", "the path's round-trip time in ms", options.rttMs);
    line.AddValue("seconds", "how long the flows send", options.seconds);
    line.AddValue("flows", "how many flows", options.flows);
    line.AddValue("spread", "the time in s over which they start", options.spread);
    line.AddValue("start", "when the first one starts, in s", options.start);
    line.AddValue("from", "when what is printed begins, in s", options.from);
    line.AddValue("limit", "the bottleneck queue's limit in packets", options.limitPackets);
    line.AddValue("variant", "ns-3's class of the congestion control", options.variant);
    line.AddValue("pcap", "prefix of the captures' names", options.pcap);
    line.Parse(argc, argv);
    return options;
}

// What ns-3 does not do by default but Linux does, and sizes that do not get in the way.
void configureTcp(const std::string& variant) {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::" + variant)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(SOCKET_BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(SOCKET_BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    // Linux's pair; ns-3's delayed ACK of 200 ms with this RTO would retransmit for ever
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::PcapFileWrapper::CaptureSize", UintegerValue(SNAPLEN_BYTES));
}

// The queue is the device's own, so that no other queue stands before it.
NetDeviceContainer connect(PointToPointHelper& link, Ptr<Node> one, Ptr<Node> other,
                           double rateMbit, Time delay, std::uint32_t limitPackets) {
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rateMbit * 1e6)));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, limitPackets)));
    return link.Install(one, other);
}

void address(const NetDeviceContainer& devices, const char* network) {
    Ipv4AddressHelper helper(network, "255.255.255.0");
    helper.Assign(devices);
    // Assign adds fq_codel to every device that has no queue discipline
    TrafficControlHelper().Uninstall(devices);
}

void runFlows(Ptr<Node> sender, Ptr<Node> receiver, Ipv4Address to, const Options& options) {
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(to, PORT));
    source.SetAttribute("SendSize", UintegerValue(SEGMENT_BYTES));
    for (int flow = 0; flow < options.flows; ++flow) {
        auto each = source.Install(sender);
        each.Start(Seconds(options.start + options.spread * flow / options.flows));
        each.Stop(Seconds(options.seconds));
    }
    PacketSinkHelper sink("ns3::TcpSocketFactory",
                          InetSocketAddress(Ipv4Address::GetAny(), PORT));
    sink.Install(receiver);
}

std::uint64_t packetsReceived = 0;

void countPacket(Ptr<const Packet>) { ++packetsReceived; }

// What is printed of the time from `from` on.
struct Measured {
    Time from;
    std::uint64_t bytes = 0; // that the receiver's program read
    std::uint64_t arrived = 0; // at the router
    std::uint64_t queued = 0;
    std::uint64_t left = 0;
    double waitedMs = 0;
    std::queue<Time> entries; // of the packets in the queue, first in, first out

    bool holds() const { return Simulator::Now() >= from; }

    void read(Ptr<const Packet> packet, const Address&) { bytes += holds() * packet->GetSize(); }

    void arrive(Ptr<const Packet>) { arrived += holds(); }

    void enqueue(Ptr<const Packet>) {
        queued += holds();
        entries.push(Simulator::Now());
    }

    void dequeue(Ptr<const Packet>) {
        if (entries.front() >= from) {
            waitedMs += (Simulator::Now() - entries.front()).GetSeconds() * 1e3;
            ++left;
        }
        entries.pop();
    }

    // What does not fit is no drop of the queue's: while that is full, nobody sends to it
    // (TrafficControlLayer::Send).
    double dropRate() const { return double(arrived - queued) / arrived; }

    void watch(Ptr<NetDevice> before, Ptr<NetDevice> device) {
        auto queue = DynamicCast<PointToPointNetDevice>(device)->GetQueue();
        before->TraceConnectWithoutContext("MacRx", MakeCallback(&Measured::arrive, this));
        queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Measured::enqueue, this));
        queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&Measured::dequeue, this));
    }
};

} // namespace

int main(int argc, char* argv[]) {
    const Options options = parse(argc, argv);
    configureTcp(options.variant);

    NodeContainer nodes(3); // sender, router, receiver
    PointToPointHelper link;
    const Time quarter = Seconds(options.rttMs / 1e3 / 4); // two links, there and back
    const auto fast = connect(link, nodes.Get(0), nodes.Get(1), FAST_MBIT, quarter,
                              FAST_LINK_PACKETS);
    const auto slow = connect(link, nodes.Get(1), nodes.Get(2), options.rateMbit, quarter,
                              options.limitPackets);
    InternetStackHelper().Install(nodes);
    address(fast, "10.0.1.0");
    address(slow, "10.0.0.0");
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    if (!options.pcap.empty()) {
        link.EnablePcapAll(options.pcap);
    }

    const auto to = nodes.Get(2)->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal();
    runFlows(nodes.Get(0), nodes.Get(2), to, options);
    slow.Get(1)->TraceConnectWithoutContext("MacRx", MakeCallback(&countPacket));
    Measured measured{Seconds(options.from)};
    measured.watch(fast.Get(1), slow.Get(0));
    nodes.Get(2)->GetApplication(0)->TraceConnectWithoutContext(
        "Rx", MakeCallback(&Measured::read, &measured));
    Simulator::Stop(Seconds(options.seconds));
    Simulator::Run();

    const double seconds = options.seconds - options.from;
    std::cout << "{\"goodput_mbps\": " << measured.bytes * 8 / seconds / 1e6
              << ", \"drop_rate\": " << measured.dropRate()
              << ", \"queue_mean_ms\": " << measured.waitedMs / measured.left
              << ", \"packets\": " << packetsReceived << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
