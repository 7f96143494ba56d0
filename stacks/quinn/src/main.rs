//! Send bytes to a receiver by quinn until ended, or receive and discard them.
//!
//!     flow receive PORT
//!     flow send ADDRESS PORT CONTROL
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{client::danger, DigitallySignedStruct, Error, SignatureScheme};
use std::{error, net::SocketAddr, sync::Arc, time::Duration};

type Outcome<T> = Result<T, Box<dyn error::Error>>;
const PROTOCOL: &[u8] = b"flow";

/// Accepts any certificate: the network is the guest's own.
#[derive(Debug)]
struct Trusting;

impl danger::ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self, _: &CertificateDer, _: &[CertificateDer], _: &ServerName, _: &[u8], _: UnixTime,
    ) -> Result<danger::ServerCertVerified, Error> {
        Ok(danger::ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self, _: &[u8], _: &CertificateDer, _: &DigitallySignedStruct,
    ) -> Result<danger::HandshakeSignatureValid, Error> {
        Ok(danger::HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self, _: &[u8], _: &CertificateDer, _: &DigitallySignedStruct,
    ) -> Result<danger::HandshakeSignatureValid, Error> {
        Ok(danger::HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// Windows that never limit the sender.
fn transport(control: &str) -> Outcome<Arc<TransportConfig>> {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match control {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => return Err(format!("{control}: cubic, newreno or bbr").into()),
    };
    let mut config = TransportConfig::default();
    config.congestion_controller_factory(factory);
    config.stream_receive_window(VarInt::from_u32(1 << 25));
    config.receive_window(VarInt::from_u32(1 << 26));
    config.send_window(1 << 25);
    config.max_idle_timeout(None);
    Ok(Arc::new(config))
}

async fn receive(port: u16) -> Outcome<()> {
    let own = rcgen::generate_simple_self_signed(vec!["receiver".into()])?;
    let key = PrivatePkcs8KeyDer::from(own.key_pair.serialize_der());
    let mut secrets = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())?;
    secrets.alpn_protocols = vec![PROTOCOL.into()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(secrets)?));
    config.transport_config(transport("cubic")?);
    let endpoint = Endpoint::server(config, SocketAddr::from(([0, 0, 0, 0], port)))?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    while stream.read_chunk(1 << 20, true).await?.is_some() {}
    Ok(())
}

async fn send(address: SocketAddr, control: &str) -> Outcome<()> {
    let begin = tokio::time::Instant::now();
    let mut secrets = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    secrets.alpn_protocols = vec![PROTOCOL.into()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(secrets)?));
    config.transport_config(transport(control)?);
    let endpoint = Endpoint::client(SocketAddr::from(([0, 0, 0, 0], 0)))?;
    let connection = endpoint.connect_with(config, address, "receiver")?.await?;
    let mut stream = connection.open_uni().await?;
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        loop {
            let at = ticks.tick().await - begin;
            let seen = connection.stats().path;
            println!(
                "{{\"time_s\":{},\"cwnd_bytes\":{},\"rtt_ms\":{},\"sent_packets\":{},\"lost_packets\":{}}}",
                at.as_secs_f64(), seen.cwnd, seen.rtt.as_secs_f64() * 1e3, seen.sent_packets, seen.lost_packets,
            );
        }
    });
    let block = [0; 1 << 16];
    loop {
        stream.write_all(&block).await?;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", port] => receive(port.parse()?).await,
        ["send", address, port, control] => send(format!("{address}:{port}").parse()?, control).await,
        _ => Err("usage: flow receive PORT | flow send ADDRESS PORT CONTROL".into()),
    }
}
