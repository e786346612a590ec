"""Secrets and identifiers as people and programs write them, and strategies that mix them with other text."""

from __future__ import annotations

from hypothesis import strategies as st

SECRET_FORMS = [
    ('{"password": "x1y2z3q"}', "x1y2z3q"),
    ('{\\"password\\": \\"x1y2z3q\\"}', "x1y2z3q"),
    ("db_password=hunter2secret", "hunter2secret"),
    ("client_secret=abc123def", "abc123def"),
    ("refresh_token=zzz111yyy", "zzz111yyy"),
    ("api-key: qwe123rty", "qwe123rty"),
    ("X-API-Key: qwe123rty", "qwe123rty"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "wJalrXUtnFEMI"),
    ("password=don't-tell-anyone", "tell-anyone"),
    ('password: "it\'s me inside"', "me inside"),
    ("password: 'it's me inside'", "me inside"),
    ("sk-proj-abcDEF123456_789-xyz", "abcDEF123456"),
    ("sk-ant-api03-abcDEF123456_789-xyz", "abcDEF123456"),
    ("github_pat_11ABCDEFG0123456789_abcdef", "11ABCDEFG"),
    ("ghu_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c"),
    ("ghr_1B4a2e77838347a7E420ce178F2E7c6912E169246c34", "1B4a2e77838347"),
    ("gho_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c"),
    ("authorization: bearer abcdef1234567890", "abcdef1234567890"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNz"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdef\n-----END RSA PRIVATE KEY-----", "MIIEabcdef"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA", "b3BlbnNzaA"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_X", "dozjgNryP4J3"),
    ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    ("AIzaSyD-1234567890abcdefghijklmnopqrstu", "1234567890abc"),
    ("xoxb-1234567890-abcdefghij", "abcdefghij"),
    ("glpat-abcdefghij1234567890", "abcdefghij"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijkl"),
    ("hf_abcdefghijklmnopqrstuvwxyz01234567", "abcdefghijkl"),
    ("sk_live_abcdefghijklmnop", "abcdefghijkl"),
    ("https://user:pa55word9@example.com/x", "pa55word9"),
    ("postgres://u:p4ssw0rd@db/app", "p4ssw0rd"),
    ("Server=db;User Id=sa;Password=abc123xyz;", "abc123xyz"),
    ("https://x.example/?token=abc123def&x=1", "abc123def"),
    ("パスワード：ひみつ123です", "ひみつ123"),
]
IDENTIFIER_FORMS = [
    ("090-1234-5678", "phone"), ("+81-90-1234-5678", "phone"), ("03-1234-5678", "phone"), ("+1 (555) 010-1234", "phone"),
    ("2001:db8::1", "ip"), ("::1", "ip"), ("fe80::1%eth0", "ip"), ("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "ip"),
    ("192.0.2.10", "ip"), ("/home/山田/秘密.txt", "filepath"), ("/Users/José/x.py", "filepath"), ("C:\\Users\\山田\\doc.txt", "filepath"),
    ("first.last+tag@mail.example.co.jp", "email"), ("4111-1111-1111-1111", "card"), ("GB82 WEST 1234 5698 7654 32", "iban"),
    ("536-90-4399", "ssn"),
]  # fmt: skip

FRAGMENTS = st.sampled_from(
    [text for text, _ in SECRET_FORMS] + [text for text, _ in IDENTIFIER_FORMS]
    + ["password=", "token: ", '"', "'", "\\", "、", " ", "\n", ",", "[REDACTED:password]", "Bearer ", "://", "@", ":", "sk-", "eyJ", "日本"]
    + ["password", "UPDATE t SET password = ?", "user,password\n", "| user | password |\n|--|--|\n", "ana,x1y2z3q\n", "| ana | x1y2z3q |\n", "\\n", '\\"', "|", "\t", "  ", "[secrets]\n", "passwords:\n",
       "password: |\n  ", "<th>password</th>", "</td>", "INSERT INTO t (a, password) VALUES (", "'x1y2z3q'", "(", ")", "[", "{", "+ ", "<<EOF\n", "EOF\n", "Password [", "? "]
)  # fmt: skip

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12) | FRAGMENTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["password", "apiKey", "q", "max_tokens", "columns", "rows", "sql", "params", "secrets"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
