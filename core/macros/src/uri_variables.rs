//! The names of the variables in a URI template (RFC 6570).

/// Returns the names of the variables, in their order. Whether the template is valid is checked where it is registered.
pub(crate) fn uri_variables(template: &str) -> Vec<String> {
    let expressions = template.split('{').skip(1);
    let expressions = expressions.filter_map(|rest| rest.split_once('}'));
    let variables = expressions.flat_map(|(expression, _)| {
        let list = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        list.split(',')
    });
    let name = |variable: &str| {
        let name = variable.split(':').next().unwrap_or_default();
        name.trim_end_matches('*').to_owned()
    };
    variables.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::uri_variables;

    #[test]
    fn finds_the_variables_of_every_operator() {
        assert_eq!(uri_variables("note://index"), Vec::<String>::new());
        assert_eq!(
            uri_variables("file:///{+path}{?first,then*}{&short:3}"),
            ["path", "first", "then", "short"]
        );
    }
}
