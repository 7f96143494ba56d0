//! Send bytes to a receiver by s2n-quic until ended, or receive and discard them.
//!
//!     flow receive PORT
//!     flow send ADDRESS PORT CONTROL
use s2n_quic::client::Connect;
use s2n_quic::provider::event::{events, ConnectionInfo, ConnectionMeta, Subscriber};
use s2n_quic::provider::{congestion_controller as control, io::tokio as io, limits::Limits, tls::rustls as tls};
use s2n_quic::{Client, Server};
use std::{error, net::SocketAddr, time::Duration};

type Outcome<T> = Result<T, Box<dyn error::Error + Send + Sync>>;
const CERTIFICATE: &str = include_str!("../certificate.pem");
const KEY: &str = include_str!("../key.pem");
const WINDOW: u64 = 1 << 25; // bytes: it never limits the sender

fn limits() -> Outcome<Limits> {
    Ok(Limits::new()
        .with_data_window(WINDOW)?
        .with_unidirectional_data_window(WINDOW)?
        .with_max_send_buffer_size(WINDOW as u32)?
        .with_max_idle_timeout(Duration::ZERO)?)
}

/// A port, and datagrams that the kernel sees one by one.
fn port(address: SocketAddr) -> Outcome<io::Provider> {
    Ok(io::Provider::builder().with_receive_address(address)?.with_gso_disabled()?.with_gro_disabled()?.build()?)
}

/// Prints the sender's window and round trips every 100 ms.
struct Notes;

#[derive(Default)]
struct Seen {
    printed: Duration,
    sent: u64,
    lost: u64,
}

impl Subscriber for Notes {
    type ConnectionContext = Seen;

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) -> Seen {
        Seen::default()
    }

    fn on_packet_sent(&mut self, seen: &mut Seen, _: &ConnectionMeta, _: &events::PacketSent) {
        seen.sent += 1;
    }

    fn on_packet_lost(&mut self, seen: &mut Seen, _: &ConnectionMeta, _: &events::PacketLost) {
        seen.lost += 1;
    }

    fn on_recovery_metrics(&mut self, seen: &mut Seen, about: &ConnectionMeta, now: &events::RecoveryMetrics) {
        let at = about.timestamp.duration_since_start();
        if at < seen.printed + Duration::from_millis(100) {
            return;
        }
        seen.printed = at;
        println!(
            "{{\"time_s\":{},\"cwnd_bytes\":{},\"rtt_ms\":{},\"sent_packets\":{},\"lost_packets\":{}}}",
            at.as_secs_f64(), now.congestion_window, now.smoothed_rtt.as_secs_f64() * 1e3, seen.sent, seen.lost,
        );
    }
}

async fn receive(address: SocketAddr) -> Outcome<()> {
    let mut server = Server::builder()
        .with_tls(tls::Server::builder().with_certificate(CERTIFICATE, KEY)?.build()?)?
        .with_io(port(address)?)?
        .with_limits(limits()?)?
        .start()?;
    let mut connection = server.accept().await.ok_or("closed")?;
    let mut stream = connection.accept_receive_stream().await?.ok_or("closed")?;
    while stream.receive().await?.is_some() {}
    Ok(())
}

async fn send(address: SocketAddr, control: impl control::Provider) -> Outcome<()> {
    let client = Client::builder()
        .with_tls(tls::Client::builder().with_certificate(CERTIFICATE)?.build()?)?
        .with_io(port(([0, 0, 0, 0], 0).into())?)?
        .with_limits(limits()?)?
        .with_event(Notes)?
        .with_congestion_controller(control)?
        .start()?;
    let mut connection = client.connect(Connect::new(address).with_server_name("receiver")).await?;
    let mut stream = connection.open_send_stream().await?;
    let block = vec![0; 1 << 16];
    loop {
        stream.send(block.clone().into()).await?;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", port] => receive(([0, 0, 0, 0], port.parse()?).into()).await,
        ["send", address, port, "cubic"] => {
            send(format!("{address}:{port}").parse()?, control::Cubic::default()).await
        }
        ["send", address, port, "bbr"] => {
            send(format!("{address}:{port}").parse()?, control::Bbr::default()).await
        }
        _ => Err("usage: flow receive PORT | flow send ADDRESS PORT cubic|bbr".into()),
    }
}
