"""Expressions: literals, operators, precedence, calls, subscripts."""
VALUES = {
    "n": 7, "zero": 0, "neg": -3, "f": 2.5, "s": "hello", "e": "", "t": True, "no": None,
    "xs": [3, 1, 2], "ys": [], "names": ["ann", "Bob", "cid"], "d": {"a": 1, "b": {"c": [10, 20]}, "items": "own"},
    "users": [{"name": "ann", "age": 30}, {"name": "bob", "age": 25}], "u": "héllo wörld",
}
CASES = [
    # the least integer
    "{{ -9223372036854775808 }}", "{{ -9223372036854775808 + 1 }}{{ -0x8000000000000000 }}{{ 1 - 9223372036854775807 }}", "{{ [1, 2][-9223372036854775808:] }}{{ -9223372036854775808 == -9223372036854775807 - 1 }}",
    # literals
    "{{ 1 }} {{ 42 }} {{ 0 }} {{ 1_000 }} {{ 0x1F }} {{ 0o17 }} {{ 0b101 }}",
    "{{ 1.5 }} {{ 1e3 }} {{ 1.5e-3 }} {{ 1E10 }} {{ 1e100 }} {{ 0.1 }} {{ 1_0.5 }}",
    "{{ 'a' }} {{ \"b\" }} {{ 'it\\'s' }} {{ \"q\\\"q\" }} {{ 'a' 'b' \"c\" }}",
    "{{ 'tab\\tnew\\nend' }} {{ '\\x41\\u00e9\\U0001F600' }} {{ '\\101' }} {{ '\\q' }} {{ '\\\\' }}",
    "{{ true }} {{ false }} {{ none }} {{ True }} {{ False }} {{ None }}",
    "{{ [1, 'a', none, [2]] }} {{ [] }} {{ [1,] }}",
    "{{ (1, 2) }} {{ (1,) }} {{ () }} {{ 1, 2 }}",
    "{{ {'a': 1, 2: 'b', 'c': {'d': []}} }} {{ {} }} {{ {'a': 1,} }}",
    "{{ {1: 'a', 1.0: 'b', true: 'c'} }}", "{{ 'unterminated }}", "{{ 01 }}", "{{ 1.foo }}", "{{ 1 2 }}",
    # arithmetic
    "{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 10 - 2 - 3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}",
    "{{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 6 / 3 }}",
    "{{ 7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ -7.5 // 2 }} {{ 2 ** -1 }} {{ 2.0 ** 0.5 }} {{ 4 ** 0.5 }}",
    "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 1.0 / 0 }}", "{{ 0 ** -1 }}", "{{ 1 + 'a' }}", "{{ 'a' + 1 }}",
    "{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ [1] + [2] }} {{ [1, 2] * 2 }} {{ 'a' * -1 }}|",
    "{{ (1,) + (2,) }} {{ (1, 2) * 2 }}", "{{ [1] + (2,) }}", "{{ true + 1 }} {{ true * 3 }} {{ -true }} {{ +true }}",
    "{{ - 5 }} {{ --5 }} {{ +5 }} {{ -f }} {{ -n|abs }} {{ (-n)|abs }}", "{{ -'a' }}", "{{ +'a' }}",
    "{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789.123 }} {{ 1e-5 }} {{ 1e-4 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}",
    "{{ 100 * 1.1 }} {{ 3.0 }} {{ 1/3 }} {{ 2/3 }} {{ 1e22 }} {{ 1e21 }} {{ 9007199254740993 }} {{ 0.1 * 3 }}",
    "{{ 2 ** 62 }} {{ 9223372036854775807 }} {{ 2 ** 0 }} {{ 10 ** 15 }}", "{{ 1.5 + 1 }} {{ 1 + 1.5 }} {{ 3 * 1.0 }}",
    # comparison
    "{{ 1 < 2 }} {{ 1 > 2 }} {{ 1 <= 1 }} {{ 1 >= 2 }} {{ 1 == 1.0 }} {{ 1 != 2 }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 > 1 }} {{ 1 == 1 == 1 }} {{ 1 < 2 > 1 }} {{ 1 < n <= 7 != 8 }}",
    "{{ 'a' < 'b' }} {{ 'a' == 'a' }} {{ 'B' < 'a' }} {{ 'é' > 'z' }} {{ [1, 2] < [1, 3] }} {{ [1] == [1.0] }} {{ (1,) == [1] }}",
    "{{ {'a': 1} == {'a': 1} }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ none == none }} {{ none == false }}",
    "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ [1] < ['a'] }}", "{{ {} < {} }}", "{{ true == 1 }} {{ true < 2 }} {{ 'a' != 1 }}",
    "{{ 1 in xs }} {{ 9 in xs }} {{ 9 not in xs }} {{ 'ell' in s }} {{ 'a' in d }} {{ 'z' not in d }} {{ '' in s }}",
    "{{ 1 in 5 }}", "{{ 1 in 'a' }}", "{{ [1] in d }}", "{{ 'x' in none }}", "{{ 2 in (1, 2) }} {{ 'ö' in u }} {{ not 1 in xs }}",
    # logic
    "{{ true and false }} {{ true or false }} {{ not true }} {{ not not true }} {{ 1 and 2 }} {{ 0 or 'x' }} {{ '' or none }}",
    "{{ 0 and 1/0 }} {{ 1 or 1/0 }} {{ n and s }} {{ ys or xs }} {{ not xs }} {{ not ys }}",
    "{{ 1 if true else 2 }} {{ 1 if false else 2 }} {{ 1 if false }}| {{ 'a' if n > 5 else 'b' if n > 3 else 'c' }}",
    "{{ (1 if false) is undefined }} {{ 1 if 0 else 2 if 0 else 3 }} {{ n if n is odd else 0 }}",
    "{{ 1 or 2 and 0 }} {{ (1 or 2) and 0 }} {{ not 1 == 2 }} {{ not (1 == 2) }} {{ 1 + 1 == 2 and 2 * 2 == 4 }}",
    # concat
    "{{ 1 ~ 'a' ~ 2.5 ~ none ~ true }} {{ 'a' ~ 1 + 2 }} {{ 1 ~ 2 * 3 }} {{ [1] ~ {} }} {{ missing ~ 'x' }}",
    # attributes, items, slices
    "{{ d.a }} {{ d['a'] }} {{ d.b.c }} {{ d.b.c[0] }} {{ d['b']['c'][1] }} {{ d.missing }}|{{ d['missing'] }}|",
    "{{ d.items is callable }} {{ d['items'] }} {{ xs[0] }} {{ xs[-1] }} {{ xs[9] }}| {{ xs['a'] }}| {{ s[0] }} {{ s[-1] }} {{ s[99] }}|",
    "{{ xs.0 }} {{ xs.2 }} {{ d.b.c.1 }} {{ users.0.name }} {{ users[1]['age'] }}", "{{ d.missing.more }}", "{{ missing.attr }}", "{{ missing['x'] }}",
    "{{ xs[1:] }} {{ xs[:1] }} {{ xs[::-1] }} {{ xs[:] }} {{ xs[-2:] }} {{ s[1:3] }} {{ s[::-1] }} {{ s[::2] }} {{ s[10:] }}|",
    "{{ xs[5:1] }} {{ xs[::2] }} {{ (1, 2, 3)[1:] }} {{ u[1:4] }} {{ u[::-1] }} {{ u[1] }} {{ xs[2:0:-1] }} {{ xs[-100:100] }}",
    "{{ xs[::0] }}", "{{ xs['a':] }}", "{{ n[1:] }}", "{{ none.x }}|", "{{ 5 .x }}|", "{{ xs[true] }} {{ xs[1.0] }}|", "{{ d[[1]] }}|", "{{ xs[none] }}|",
    "{{ range(5)[1:3] }} {{ range(10)[2] }} {{ range(5)|list }} {{ range(5) }} {{ range(1, 5) }} {{ range(1, 10, 3) }} {{ range(5, 0, -2)|list }}",
    # calls
    "{{ s.upper() }} {{ s.upper().lower() }} {{ 'a,b'.split(',') }} {{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }}",
    "{{ s() }}", "{{ missing() }}", "{{ d.a() }}", "{{ none() }}", "{{ s.nothing() }}", "{{ range() }}", "{{ range(1, 2, 3, 4) }}", "{{ range(0, 1, 0) }}",
    "{{ dict(a=1, b='x') }} {{ dict({'a': 1}, b=2) }} {{ dict([('x', 1), ('y', 2)]) }} {{ dict(**{'k': 'v'}) }} {{ dict() }}",
    "{{ range(*[1, 4])|list }} {{ '{} {}'.format(*xs[:2]) }} {{ '{a}'.format(**d) }}", "{{ dict(a=1, a=2) }}", "{{ dict(a=1, **{'a': 2}) }}", "{{ range(*5) }}", "{{ dict(**[1]) }}",
    "{{ range(1, *xs, 2) }}", "{{ dict(a=1, 2) }}", "{{ foo(a=1, *xs) }}", "{{ dict(**d, *xs) }}", "{{ dict(a=1,) }} {{ range(3,)|list }}",
    # undefined, lenient
    "{{ missing }}| {{ missing|default('d') }} {{ missing is defined }} {{ missing is undefined }} {{ not missing }} {{ missing == other }}",
    "{{ missing + 1 }}", "{{ missing < 1 }}", "{{ -missing }}", "{{ missing|length }} {{ missing|list }} {{ missing|join }}|", "{{ missing == 1 }} {{ missing != 1 }} {{ [missing] }}",
    "{% for x in missing %}x{% else %}none{% endfor %} {{ 1 in missing }} {{ missing ~ '' }}|", "{{ missing|upper }}| {{ missing|int(3) }}", "{{ missing|abs }}", "{{ missing|round }}",
    "{{ d.x.y is defined }}", "{{ d.x is defined }} {{ d.a is defined }} {{ xs.9 is defined }}",
    # errors of syntax
    "{{ }}", "{{ 1 + }}", "{{ (1 }}", "{{ [1, 2 }}", "{{ {1} }}", "{{ a b }}", "{{ 1 ++ }}", "{{ 'a' is }}", "{{ a | }}", "{{ a.}}", "{{ !a }}", "{{ a ? b }}", "{{ ) }}", "{{ (] }}", "{{ 1 if }}",
    "{{ 1 is foo }}", "{{ 1|nothing }}", "{{ 1 if true else }}", "{{ not }}", "{{ @ }}", "{{ a[ }}", "{{ a[1 }}", "{{ {1:2, 3} }}", "{{ 1 =  2 }}", "{{ a.b.1.c }}|",
    "{{ [1, 2, 3] is iterable is true }}", "{{ $ }}", "{{ `a` }}", "{{ 1; 2 }}", "{{ lambda }}|", "{{ 'a' 'b' ~ 'c' }} {{ 5 is not none and true }}",
    "{{ 5 is odd and 4 is even }} {{ 5 is divisibleby 5 }} {{ 5 is divisibleby(2) }} {{ not 5 is odd }} {{ 5 is not even }}",
    "{{ xs is sequence and xs|length > 2 }} {{ 3 is in xs }} {{ 3 is eq 3 }} {{ n is gt 3 }} {{ n is lt(3) }} {{ 'a' is in 'abc' }}",
]
