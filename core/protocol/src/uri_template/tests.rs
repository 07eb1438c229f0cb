use super::*;

fn list(items: &[&str]) -> Variable {
    Variable::List(items.iter().map(|item| (*item).to_owned()).collect())
}

fn map(pairs: &[(&str, &str)]) -> Variable {
    Variable::Map(
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    )
}

/// The variables of RFC 6570 §3.2.
fn rfc() -> Variables {
    Variables::new()
        .with("count", list(&["one", "two", "three"]))
        .with("dom", list(&["example", "com"]))
        .with("dub", "me/too")
        .with("hello", "Hello World!")
        .with("half", "50%")
        .with("var", "value")
        .with("who", "fred")
        .with("base", "http://example.com/home/")
        .with("path", "/foo/bar")
        .with("list", list(&["red", "green", "blue"]))
        .with("keys", map(&[("semi", ";"), ("dot", "."), ("comma", ",")]))
        .with("v", "6")
        .with("x", "1024")
        .with("y", "768")
        .with("empty", "")
        .with("empty_keys", map(&[]))
}

fn template(source: &str) -> UriTemplate {
    UriTemplate::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

#[test]
fn expands_every_example_of_the_rfc() {
    let variables = rfc();
    for (source, expected) in [
        // 3.2.1
        ("{count}", "one,two,three"),
        ("{count*}", "one,two,three"),
        ("{/count}", "/one,two,three"),
        ("{/count*}", "/one/two/three"),
        ("{;count}", ";count=one,two,three"),
        ("{;count*}", ";count=one;count=two;count=three"),
        ("{?count}", "?count=one,two,three"),
        ("{?count*}", "?count=one&count=two&count=three"),
        ("{&count*}", "&count=one&count=two&count=three"),
        // 3.2.2
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,y}", "1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("?{undef,y}", "?768"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{list}", "red,green,blue"),
        ("{list*}", "red,green,blue"),
        ("{keys}", "semi,%3B,dot,.,comma,%2C"),
        ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
        // 3.2.3
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("O{+empty}X", "OX"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path,x}/here", "/foo/bar,1024/here"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{+list}", "red,green,blue"),
        ("{+keys}", "semi,;,dot,.,comma,,"),
        ("{+keys*}", "semi=;,dot=.,comma=,"),
        // 3.2.4
        ("{#var}", "#value"),
        ("{#hello}", "#Hello%20World!"),
        ("{#half}", "#50%25"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("{#x,hello,y}", "#1024,Hello%20World!,768"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("{#path:6}/here", "#/foo/b/here"),
        ("{#keys*}", "#semi=;,dot=.,comma=,"),
        // 3.2.5
        ("{.who}", ".fred"),
        ("{.who,who}", ".fred.fred"),
        ("{.half,who}", ".50%25.fred"),
        ("www{.dom*}", "www.example.com"),
        ("X{.var}", "X.value"),
        ("X{.empty}", "X."),
        ("X{.undef}", "X"),
        ("X{.var:3}", "X.val"),
        ("X{.list}", "X.red,green,blue"),
        ("X{.list*}", "X.red.green.blue"),
        ("X{.keys}", "X.semi,%3B,dot,.,comma,%2C"),
        ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
        ("X{.empty_keys}", "X"),
        // 3.2.6
        ("{/who}", "/fred"),
        ("{/half,who}", "/50%25/fred"),
        ("{/who,dub}", "/fred/me%2Ftoo"),
        ("{/var,empty}", "/value/"),
        ("{/var,undef}", "/value"),
        ("{/var:1,var}", "/v/value"),
        ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
        ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
        // 3.2.7
        ("{;who}", ";who=fred"),
        ("{;half}", ";half=50%25"),
        ("{;empty}", ";empty"),
        ("{;v,empty,who}", ";v=6;empty;who=fred"),
        ("{;v,bar,who}", ";v=6;who=fred"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{;hello:5}", ";hello=Hello"),
        ("{;keys}", ";keys=semi,%3B,dot,.,comma,%2C"),
        ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
        // 3.2.8
        ("{?who}", "?who=fred"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?x,y,undef}", "?x=1024&y=768"),
        ("{?var:3}", "?var=val"),
        ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
        ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
        // 3.2.9
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&x,y,empty}", "&x=1024&y=768&empty="),
        ("{&keys*}", "&semi=%3B&dot=.&comma=%2C"),
    ] {
        assert_eq!(template(source).expand(&variables), expected, "{source}");
    }
}

#[test]
fn literals_are_kept_and_encoded_where_they_must_be() {
    assert_eq!(
        template("file:///é/%41?a=b").expand(&Variables::new()),
        "file:///%C3%A9/%41?a=b"
    );
    assert_eq!(
        template("{a}").expand(&Variables::new().with("a", "é😀~")),
        "%C3%A9%F0%9F%98%80~"
    );
    assert_eq!(
        template("{a:1}").expand(&Variables::new().with("a", "éa")),
        "%C3%A9"
    );
    assert_eq!(
        template("{+a}").expand(&Variables::new().with("a", "%41%4")),
        "%41%254"
    );
}

#[test]
fn rejects_invalid_templates_with_the_position() {
    for (source, at) in [
        ("a{", 1),
        ("a}b", 1),
        ("{a}{b", 3),
        ("{}", 1),
        ("{+}", 2),
        ("{a,}", 3),
        ("{=a}", 1),
        ("{|a}", 1),
        ("{a b}", 1),
        ("{a..b}", 1),
        ("{a,b:0}", 3),
        ("{a:10000}", 1),
        ("{a:x}", 1),
        ("{a*:3}", 1),
        ("{{a}}", 1),
        ("a b", 1),
        ("a%4", 1),
        ("<", 0),
    ] {
        let error = UriTemplate::parse(source).expect_err(source);
        assert_eq!(error.at, at, "{source}: {error}");
    }
    let many = format!(
        "{{{}}}",
        vec!["a"; crate::limits::MAX_TEMPLATE_VARIABLES + 1].join(",")
    );
    assert!(UriTemplate::parse(&many).is_err());
}

fn found(source: &str, uri: &str) -> Option<String> {
    let variables = template(source).matches(uri)?;
    let shown = variables.iter().map(|(name, value)| match value {
        Variable::Text(text) => format!("{name}={text}"),
        Variable::List(items) => format!("{name}={items:?}"),
        Variable::Map(pairs) => format!("{name}={pairs:?}"),
    });
    Some(shown.collect::<Vec<_>>().join(" "))
}

#[test]
fn a_uri_is_matched_back_to_its_variables() {
    for (source, uri, expected) in [
        ("file:///{name}.txt", "file:///a.b.txt", "name=a.b"),
        (
            "users://{user}/posts/{id}",
            "users://a%40b/posts/7",
            "user=a@b id=7",
        ),
        (
            "users://{user}/posts",
            "users://a@b.c:1/posts",
            "user=a@b.c:1",
        ),
        ("x://{a}-{b}", "x://1-2-3", "a=1-2 b=3"),
        ("x://{a}{b}", "x://123", "a=12 b=3"),
        ("x://{a,b}", "x://1,2", "a=1 b=2"),
        ("x://{a,b}", "x://1", "a=1"),
        ("file:///{+path}", "file:///a/b%20c?d#e", "path=a/b c?d#e"),
        ("{+path}/here", "/foo/bar/here", "path=/foo/bar"),
        ("x:{/a,b}", "x:/1/2", "a=1 b=2"),
        ("x:{/a,b}", "x:/1", "a=1"),
        ("x:{/a}", "x:", ""),
        ("x:{/all*}", "x:/1/2/3", r#"all=["1", "2", "3"]"#),
        ("x:{/all*}/end", "x:/1/2/end", r#"all=["1", "2"]"#),
        ("x:{/all*}.txt", "x:/1/2.txt", r#"all=["1", "2"]"#),
        ("x:{/all*,last}", "x:/1/2/3", r#"all=["1", "2", "3"]"#),
        ("x:{all*}", "x:1,2,3", r#"all=["1", "2", "3"]"#),
        ("f{.ext}", "f.tar.gz", "ext=tar.gz"),
        ("f{.a,b}", "f.tar.gz", "a=tar b=gz"),
        ("f{.ext}", "f", ""),
        ("x:a{#frag}", "x:a#b/c?d", "frag=b/c?d"),
        ("x:a{#frag}", "x:a#", "frag="),
        ("x:a{#frag}", "x:a", ""),
        ("x:a{;p,q}", "x:a;q=2;p=1", "q=2 p=1"),
        ("x:a{;p}", "x:a;p", "p="),
        ("x:s{?q,page}", "x:s?q=a%26b&page=2", "q=a&b page=2"),
        ("x:s{?q,page}", "x:s?page=2", "page=2"),
        ("x:s{?q,page}", "x:s", ""),
        ("x:s{?q}", "x:s?q", "q="),
        ("x:s?fixed=1{&q}", "x:s?fixed=1&q=2", "q=2"),
        ("x:s{?q}{&r}", "x:s?q=1&r=2", "q=1 r=2"),
        ("x:s{?q}{#f}", "x:s?q=1#2", "q=1 f=2"),
        ("x:s{?l*}", "x:s?l=1&l=2", r#"l=["1", "2"]"#),
        (
            "x:s{?a,rest*}",
            "x:s?b=1&a=2&c=3",
            r#"rest=[("b", "1"), ("c", "3")] a=2"#,
        ),
        ("{a:2}{b}", "123", "a=12 b=3"),
        ("{a:2}", "éé", "a=éé"),
        ("{a}{b}", "%C3%A9%C3%A9", "a=é b=é"),
        ("{a}{b}", "x%41", "a=x b=A"),
        ("{a}/{a}", "1/1", "a=1"),
        ("x:%41/{a}", "x:%41/1", "a=1"),
    ] {
        assert_eq!(
            found(source, uri).as_deref(),
            Some(expected),
            "{source} {uri}"
        );
    }
}

#[test]
fn a_uri_that_no_variables_could_give_does_not_match() {
    for (source, uri) in [
        ("file:///{name}", "file:///"),
        ("file:///{name}", "file:///a/b"),
        ("file:///{name}", "file:///a?b"),
        ("file:///{name}", "FILE:///a"),
        ("{a}", "%4"),
        ("{a}", "%zz"),
        ("{a}", "%ff"),
        ("{a:2}", "123"),
        ("{a}/{a}", "1/2"),
        ("x:s{?q}", "x:s?r=1"),
        ("x:s{?q}", "x:s?q=1&q=2"),
        ("x:s{?q}", "x:s?q=1&r=2"),
        ("x:s{?q}", "x:s?"),
        ("x:{/a}", "x:/"),
        ("x:a{#b,c}", "x:a,c"),
        ("{a,b}", ",1"),
        ("a", "ab"),
        ("", "a"),
    ] {
        assert_eq!(found(source, uri), None, "{source} {uri}");
    }
}

#[test]
fn expansion_and_matching_are_inverse() {
    let variables = Variables::new().with("a", "x y/é?").with("b", "1,2");
    for source in [
        "s://{a}/{b}",
        "s://{a}{/b}",
        "s://h{?a,b}",
        "s://h{;a,b}",
        "s://h{/a}{?b}",
        "s://{a,b}",
    ] {
        let template = template(source);
        assert_eq!(
            template.matches(&template.expand(&variables)),
            Some(variables.clone()),
            "{source}"
        );
    }
}

#[test]
fn no_template_makes_matching_slow() {
    let source = "{+a}x{+b}x{+c}x{+d}x{+e}x{+f}x{+g}y";
    assert_eq!(found(source, &"x".repeat(MAX_URI)), None);
    let source: String = ('a'..='t').map(|name| format!("{{{name}}}")).collect();
    assert_eq!(found(&format!("{source}/end"), &"z".repeat(MAX_URI)), None);
    assert_eq!(found("{+a}", &"a".repeat(MAX_URI + 1)), None);
}

#[test]
fn long_lists_are_matched_without_recursion() {
    let uri = "/a".repeat(MAX_URI / 2);
    let variables = template("{/all*}").matches(&uri).expect("a match");
    let Some(Variable::List(items)) = variables.get("all") else {
        panic!("no list")
    };
    assert_eq!(items.len(), MAX_URI / 2);
    assert_eq!(found("{/all*}/b", &uri), None);
}

#[test]
fn the_names_of_variables_are_known() {
    let template = template("{a,b}/x{?c*}");
    assert_eq!(template.names().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(template.to_string(), "{a,b}/x{?c*}");
}

#[test]
fn variables_are_written_as_json() {
    let variables = Variables::new()
        .with("a", "x")
        .with("l", list(&["1", "2"]))
        .with("m", map(&[("k", "1"), ("k", "2")]));
    let json = serde_json::to_string(&variables).expect("JSON");
    assert_eq!(json, r#"{"a":"x","l":["1","2"],"m":{"k":"2"}}"#);
}

/// The number of steps of a match, without a limit.
fn match_cost(source: &str, uri: &str) -> usize {
    let mut budget = StepBudget::new(usize::MAX, None);
    let matched = template(source).matches_within(uri, &mut budget);
    matched.expect("there is no limit");
    budget.spent()
}

#[test]
fn matching_takes_steps_in_proportion_to_the_uri() {
    for (source, piece, end) in [
        ("log://{host}-{day}-{name}", "-", "/"),
        ("log://{host}-{day}-{name}", "a-", "/"),
        ("x://{a}{b}{c}{d}", "y", "/"),
        ("x://{+a}/{b}/{c}.txt", "a/", ""),
        ("x://{+a}{b}{+c}{d}!", "a/", ""),
        ("x://{a,b,c}-{d,e,f}-", "1,", "/"),
        ("x://{a}.{b}{.c,d}{/e}-", ".1", "?"),
        ("x://{a:3}{b}{c:2}{d}", "1", "/"),
        ("x://{+path}%2F{b}{c}", "%2F", "?"),
    ] {
        let uri = |times: usize| {
            let scheme = source.split("//").next().unwrap_or_default();
            format!("{scheme}//{}{end}", piece.repeat(times))
        };
        let (short, long) = (uri(100), uri(1_000));
        let (few, many) = (match_cost(source, &short), match_cost(source, &long));
        assert!(
            many <= 12 * few && many <= 100 * long.len(),
            "{source}: {few} steps for {}, {many} for {} bytes",
            short.len(),
            long.len()
        );
    }
}

#[test]
fn a_match_ends_when_the_budget_is_used_up() {
    let template = template("x://{/all*}{/more*}{/rest*}!");
    let uri = format!("x://{}", "/a".repeat(2_000));
    let mut budget = StepBudget::new(10_000, None);
    assert_eq!(
        template.matches_within(&uri, &mut budget),
        Err(MatchLimitReached)
    );
    assert_eq!(budget.remaining(), 0);
}
