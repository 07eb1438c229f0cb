CREATE TABLE cities (name TEXT PRIMARY KEY, country TEXT NOT NULL, people INTEGER NOT NULL);
INSERT INTO cities VALUES ('Bergen', 'Norway', 291940), ('Oslo', 'Norway', 717710), ('Turku', 'Finland', 201863);
CREATE VIEW countries AS SELECT country, sum(people) AS people FROM cities GROUP BY country;
