"""Values and checks that every slice uses: ids, errors, column types, fields of requests."""
