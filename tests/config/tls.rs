//! Files of certificates and keys that are not what their fields ask for.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use oncegate::config;

use crate::{certificates::Authority, support};

const PLAIN: &str = "{ kind: embedded, embedded: { path: ledger.redb } }";

fn with(fields: &[(&str, &Path)]) -> String {
    let fields: Vec<_> =
        fields.iter().map(|(name, path)| format!("{name}: '{}'", path.display())).collect();
    let tls = fields.join(", ");
    let ledger =
        format!("{{ kind: zookeeper, zookeeper: {{ servers: ['zk1:2281'], tls: {{ {tls} }} }} }}");
    support::SMALLEST.replace(PLAIN, &ledger)
}

fn mistakes(text: &str) -> Vec<(String, String)> {
    let mistakes = config::parse("x.yaml", text.as_bytes(), &BTreeMap::new()).unwrap_err();
    mistakes.iter().map(|mistake| (mistake.field().to_owned(), mistake.to_string())).collect()
}

/// The one mistake in a file with these fields.
fn mistake(fields: &[(&str, &Path)]) -> (String, String) {
    let mut mistakes = mistakes(&with(fields));
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes.remove(0)
}

#[test]
fn a_certificate_with_its_key_passes_and_shows_only_where_they_are() {
    let ca = Authority::new();
    let own = ca.sign("gateway", "DNS:gateway");
    let key = fs::read_to_string(&own.private_key).unwrap();
    let config = support::read(&with(&[
        ("ca", &ca.certificate()),
        ("certificate", &own.certificate),
        ("private_key", &own.private_key),
    ]));
    let shown = format!("{config:?}");
    assert!(shown.contains("gateway.key"), "{shown}");
    assert!(!shown.contains(key.lines().nth(1).unwrap()), "{shown}");
}

#[test]
fn a_key_of_another_certificate_is_named() {
    let ca = Authority::new();
    let (own, other) = (ca.sign("gateway", "DNS:gateway"), ca.sign("other", "DNS:other"));
    let (field, said) = mistake(&[
        ("ca", &ca.certificate()),
        ("certificate", &own.certificate),
        ("private_key", &other.private_key),
    ]);
    assert_eq!(field, "ledger.zookeeper.tls.private_key");
    assert!(said.contains("does not belong to `certificate`; give the key"), "{said}");
}

#[test]
fn an_encrypted_key_is_told_how_to_decrypt_it() {
    let ca = Authority::new();
    let own = ca.sign("gateway", "DNS:gateway");
    let encrypted = own.private_key.with_extension("encrypted");
    let mut command = Command::new("openssl");
    command.arg("pkcs8").arg("-topk8").arg("-in").arg(&own.private_key);
    command.arg("-out").arg(&encrypted).args(["-passout", "pass:open"]);
    assert!(command.output().unwrap().status.success());
    let (field, said) = mistake(&[
        ("ca", &ca.certificate()),
        ("certificate", &own.certificate),
        ("private_key", &encrypted),
    ]);
    assert_eq!(field, "ledger.zookeeper.tls.private_key");
    assert!(said.contains("is encrypted; decrypt it with `openssl pkey`"), "{said}");
}

#[test]
fn each_file_that_holds_something_else_is_named_at_once() {
    let ca = Authority::new();
    let own = ca.sign("gateway", "DNS:gateway");
    let binary = own.certificate.with_extension("der");
    fs::write(&binary, [0x30, 0x82, 0xff]).unwrap();
    let found = mistakes(&with(&[
        ("ca", &binary),
        ("certificate", &own.private_key),
        ("private_key", &own.certificate),
    ]));
    let wrong = ["is not PEM text; ", "holds no certificate; ", "holds no private key; "];
    assert_eq!(found.len(), wrong.len(), "{found:?}");
    for ((_, said), wrong) in found.iter().zip(wrong) {
        assert!(said.contains(wrong), "{said}");
    }
}

#[test]
fn a_damaged_certificate_is_named_and_no_key_is_ever_quoted() {
    let ca = Authority::new();
    let own = ca.sign("gateway", "DNS:gateway");
    let read = |path| fs::read_to_string(path).unwrap();
    let damage = |text: String| text.replacen("MII", "????", 1).replacen("MIG", "????", 1);
    fs::write(&own.certificate, damage(read(&own.certificate))).unwrap();
    fs::write(&own.private_key, damage(read(&own.private_key))).unwrap();
    let key = read(&own.private_key);
    let found = mistakes(&with(&[
        ("ca", &ca.certificate()),
        ("certificate", &own.certificate),
        ("private_key", &own.private_key),
    ]));
    let fields: Vec<_> = found.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["ledger.zookeeper.tls.certificate", "ledger.zookeeper.tls.private_key"]);
    for (_, said) in &found {
        assert!(!said.contains(key.lines().nth(1).unwrap()), "{said}");
    }
}
