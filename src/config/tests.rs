//! What the file says in the end: defaults, substitution, examples.

use std::collections::BTreeMap;

use super::*;

fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_examples_pass() {
    for file in [include_str!("../../config/demo.yaml"), include_str!("../../config/payments.yaml")]
    {
        let loaded = parse("x.yaml", file.as_bytes(), &environment(&[]));
        let loaded = loaded.unwrap_or_else(|mistakes| panic!("{}", render_mistakes(&mistakes)));
        println!("{}", render_warnings(&loaded.warnings));
        println!("{:#?}", loaded.config);
    }
}
