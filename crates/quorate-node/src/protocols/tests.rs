//! A protocol that nobody but this file and the list it is in has heard of: its options are read,
//! its seat runs, and a client gets its unit.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::config::Config;
use crate::node::Node;
use crate::seat_tests::Toy;

const TOY: Registered = Registered {
    name: Toy::NAME,
    options: &["colour"],
    chooses: false,
    no_standing: None,
    read: read_toy,
};

const WITH_TOY: &[Registered] = &[central::CENTRAL, TOY];

fn read_toy(_: &Basis<'_>, options: &mut Options) -> Result<Read, String> {
    let colour: String = options.take("colour")?.ok_or("a toy has a colour")?;
    let about = About { canonical: format!("toy {colour}"), ..About::default() };
    Ok((ProtocolDef::new::<Toy>(about, ()), None))
}

fn parse(pool: &str) -> Result<Config, String> {
    let text = format!(
        "cluster = \"c\"\nepoch = 1\nnode = \"a\"\n\
         members = [{{ name = \"a\", peers = \"127.0.0.1:1\" }}]\n\
         listen = {{ clients = \"127.0.0.1:2\", peers = \"127.0.0.1:1\" }}\n\
         [[pools]]\nname = \"p\"\nunits = 1\n{pool}"
    );
    Config::parse_among(&text, WITH_TOY).map_err(|error| error.to_string())
}

#[test]
fn a_registered_protocol_is_read_and_named_where_a_choice_is_wrong() {
    let red = parse("protocol = \"toy\"\ncolour = \"red\"").unwrap();
    assert_eq!(red.pools[0].protocol.name(), "toy");
    assert_ne!(red.digest, parse("protocol = \"toy\"\ncolour = \"blue\"").unwrap().digest);
    assert_eq!(parse("").unwrap().pools[0].protocol.name(), "central", "the first of the list");
    for (pool, says) in [
        ("protocol = \"toy\"", "a toy has a colour"),
        ("protocol = \"ring\"", "protocol \"ring\": choose \"central\" or \"toy\""),
        ("colour = \"red\"", "colour is an option of toy, and this pool's protocol is central"),
        ("protocol = \"toy\"\ncolour = \"red\"\nsize = 3", "unknown field `size`"),
    ] {
        let error = parse(pool).unwrap_err();
        assert!(error.contains(says), "{pool}: {error}");
    }
}

#[tokio::test]
async fn a_node_grants_by_a_registered_protocol() {
    let config = parse("protocol = \"toy\"\ncolour = \"red\"").unwrap();
    let (clients, peers) = (bind().await, bind().await);
    let node = Node::start_on(config, clients, peers).await.unwrap();
    let mut stream = TcpStream::connect(node.clients_address()).await.unwrap();
    let request = "PUT /v1/pools/p/claims/1?wait=1m HTTP/1.1\r\nhost: 127.0.0.1\r\n\
                   connection: close\r\ncontent-type: application/json\r\n\
                   content-length: 12\r\n\r\n{\"units\": 1}";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("\"state\":\"granted\""), "{answer}");
    node.stop().await;
}

async fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

#[test]
fn people_find_every_protocol_in_the_table_of_the_documentation() {
    let table = include_str!("../../../../docs/configuration.md");
    for one in REGISTRY {
        let row = format!("| `{}` ", one.name);
        assert!(table.contains(&row), "{}", one.name);
    }
}
