//! Settings that are refused, and how their errors read.

use super::*;

fn refused(settings: &LinkSettings) -> String {
    LinkListener::bind(settings).unwrap_err().to_string()
}

#[test]
fn beyond_this_machine_protection_is_configured() {
    for host in ["0.0.0.0", "[::]"] {
        let open = LinkSettings::new(format!("{host}:0"));
        let error = refused(&open);
        let advice = "(`listen` under [cluster]): set `certificate`, `key` and `ca` there, or \
             `trusted_network = true`";
        assert!(error.contains(advice), "{error}");
        assert!(matches!(LinkListener::bind(&open), Err(LinksError::Unprotected(_))));
    }
    let trusted = LinkSettings { trusted_network: true, ..LinkSettings::new("0.0.0.0:0") };
    assert_ne!(LinkListener::bind(&trusted).unwrap().address().port(), 0);
    assert!(LinkListener::bind(&LinkSettings::new("127.0.0.1:0")).is_ok());
}

#[test]
fn unprotected_servers_beyond_this_machine_are_not_dialled() {
    let asker = Server::echoing(1);
    // an address for documentation, which no machine has
    let listed = BTreeMap::from([at(NodeId(2), "192.0.2.1:3142".to_owned())]);
    asker.listed.send_replace(Arc::new(listed));
    assert_eq!(
        asker.fails_to_connect(NodeId(2)),
        "192.0.2.1:3142 is beyond this machine: set `certificate`, `key` and `ca` under [cluster], \
         or `trusted_network = true` there"
    );
}

#[test]
fn addresses_that_cannot_be_listened_at_are_named() {
    let server = Server::echoing(1);
    let taken = server.links.address().to_string();
    let error = refused(&LinkSettings::new(&taken));
    assert!(error.starts_with(&format!("cannot listen at {taken} (`listen` under [cluster]): ")));
    let error = refused(&LinkSettings::new("no address"));
    assert!(error.starts_with("cannot listen at no address (`listen` under [cluster]): "));
}

#[test]
fn secrets_are_long_and_hidden() {
    let (_, lists) = watch::channel(Addresses::default());
    let started = |identity: &LinkIdentity| {
        let listener = LinkListener::bind(&LinkSettings::new("127.0.0.1:0")).unwrap();
        listener.start(identity, lists.clone()).unwrap_err().to_string()
    };
    let short = LinkIdentity { secret: LinkSecret(b"short".to_vec()), ..identity(1) };
    assert_eq!(started(&short), "the secret of the cluster has 5 bytes; at least 16 are needed");
    let long = LinkIdentity { cluster: vec![0; 257], ..identity(1) };
    assert_eq!(started(&long), "the id of the cluster has 257 bytes; at most 256 are allowed");
    assert!(format!("{short:?}").ends_with("secret: LinkSecret(..) }"));
}
