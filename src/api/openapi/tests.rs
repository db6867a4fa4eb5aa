use super::*;

#[test]
fn dump() {
    let registry = Registry::default();
    let catalogue = Catalogue::default();
    let document = document(Source { catalogue: &catalogue, policy: None, registry: &registry });
    std::fs::write("/tmp/doc.json", serde_json::to_string_pretty(&document).unwrap()).unwrap();
}
