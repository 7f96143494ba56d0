// Send bytes to a receiver by quic-go until ended, or receive and discard them.
//
//	flow receive PORT
//	flow send ADDRESS PORT
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

const protocol = "flow"

// what the sender prints every 100 ms
type stats struct {
	TimeS       float64 `json:"time_s"`
	CwndBytes   uint64  `json:"cwnd_bytes"`
	RttMs       float64 `json:"rtt_ms"`
	SentPackets uint64  `json:"sent_packets"`
	LostPackets uint64  `json:"lost_packets"`
}

// windows that never limit the sender
var config = &quic.Config{
	MaxIdleTimeout:                 time.Hour,
	InitialStreamReceiveWindow:     1 << 25,
	MaxStreamReceiveWindow:         1 << 25,
	InitialConnectionReceiveWindow: 1 << 26,
	MaxConnectionReceiveWindow:     1 << 26,
}

func check[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func certificate() tls.Certificate {
	public, private, err := ed25519.GenerateKey(nil)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(1e6 * time.Hour)}
	der := check(x509.CreateCertificate(nil, template, template, check(public, err), private))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

func receive(port string) {
	secrets := &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{protocol}}
	listener := check(quic.ListenAddr(":"+port, secrets, config))
	connection := check(listener.Accept(context.Background()))
	stream := check(connection.AcceptUniStream(context.Background()))
	io.Copy(io.Discard, stream)
}

func send(address string) {
	begin := time.Now()
	secrets := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	connection := check(quic.DialAddr(context.Background(), address, secrets, config))
	stream := check(connection.OpenUniStream())
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			seen := connection.ConnectionStats()
			json.NewEncoder(os.Stdout).Encode(stats{
				time.Since(begin).Seconds(), seen.CongestionWindow,
				float64(seen.SmoothedRTT.Microseconds()) / 1e3, seen.PacketsSent, seen.PacketsLost,
			})
		}
	}()
	block := make([]byte, 1<<16)
	for {
		check(stream.Write(block))
	}
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "receive" {
		receive(os.Args[2])
	} else if len(os.Args) == 4 && os.Args[1] == "send" {
		send(net.JoinHostPort(os.Args[2], os.Args[3]))
	} else {
		log.Fatal("usage: flow receive PORT | flow send ADDRESS PORT")
	}
}
