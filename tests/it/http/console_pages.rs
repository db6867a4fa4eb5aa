//! The pages of the console.

use super::site::Site;

const SECTION: &str = "[console]\ntitle = \"<Lab> \\\"1\\\"\"\naccent = \"#b00020\"\n\
                       login_url = \"https://login.example/\"\nread_only = true\n";

/// Returns the path of a file that the page loads, by its extension.
fn asset(page: &str, extension: &str) -> String {
    let mut places = page.split('"').filter(|text| text.starts_with("/console/assets/"));
    places.find(|place| place.ends_with(extension)).unwrap().to_owned()
}

#[test]
fn the_page_is_the_same_at_every_place_and_knows_its_server() {
    let site = Site::with(SECTION);
    let page = site.server.get("/console");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"));
    let text = page.text();
    assert!(text.contains("&lt;Lab&gt;") && !text.contains("<Lab>"), "{text}");
    for known in ["#b00020", "https://login.example/", "&quot;readOnly&quot;:true"] {
        assert!(text.contains(known), "{known}: {text}");
    }
    for place in ["/console/", "/console/executions", "/console/executions/w/a.b?event=3"] {
        let same = site.server.get(place);
        assert_eq!((same.status, same.text()), (200, text.clone()), "{place}");
    }
}

#[test]
fn files_are_kept_for_ever_and_others_do_not_exist() {
    let site = Site::with("");
    let page = site.server.get("/console").text();
    for (extension, content_type) in
        [(".js", "text/javascript"), (".css", "text/css"), (".svg", "image/svg+xml")]
    {
        let file = site.server.get(&asset(&page, extension));
        assert_eq!(file.status, 200, "{extension}");
        assert!(file.header("content-type").unwrap().starts_with(content_type), "{extension}");
        assert!(file.header("cache-control").unwrap().contains("immutable"), "{extension}");
    }
    for missing in [
        "/console/assets/none.js",
        "/console/assets/..%2Findex.html",
        "/console/assets",
        "/console/assets/",
        "/console/assets/index.js/more",
    ] {
        assert_eq!(site.server.get(missing).status, 404, "{missing}");
    }
}

#[test]
fn it_can_be_off() {
    let site = Site::with("[console]\nenabled = false\n");
    for path in ["/console", "/console/executions", "/console/assets/index.js"] {
        assert_eq!(site.server.get(path).status, 404, "{path}");
    }
}
