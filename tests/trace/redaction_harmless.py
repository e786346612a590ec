"""Texts without a secret, of the kinds that agents read and write: code, configuration, logs, prose, identifiers that are none."""

from __future__ import annotations

CODE = r"""
if token == expected:
if password == confirm_password:
while token != END:
password = get_password()
token = request.headers.get("Authorization")
password = getpass.getpass("Password: ")
api_key = os.environ["OPENAI_API_KEY"]
api_key=os.getenv("API_KEY")
secret = config.get("secret")
token: str
def login(username: str, password: str) -> bool:
def __init__(self, api_key: str | None = None, timeout: float = 20.0):
client = OpenAI(api_key=api_key)
client = Client(token=settings.token, secret=settings.client_secret)
self.password = password
self._token = token or self._load_token()
token = secrets.token_hex(16)
key = hashlib.sha256(password.encode()).hexdigest()
for token in tokens:
tokens = tokenizer.encode(text)
token = next(tokens)
token = tokens[i]
const token = await getToken();
const { password, email } = req.body;
const apiKey = process.env.API_KEY;
interface Login { password: string; token?: string }
private readonly token: Token;
password?: string | null;
let secret = Secret::new(value);
fn verify(password: &str, hash: &str) -> bool
if (password.length < 8) { throw new Error("too short"); }
if not api_key: raise ValueError("api_key is required")
assert token is not None
return token if token else None
password = None
secret=None
secret = ""
token := scanner.Token()
case token.IDENT:
std::string token = lexer.next();
String password = sc.nextLine();
$password = $_POST['password'];
params.require(:user).permit(:email, :password)
user.password = form.cleaned_data["password"]
passwords = [u.password for u in users]
class PasswordField(forms.CharField):
from app.auth import token_required, password_hash
import secrets
@pytest.fixture(params=["token", "cookie"])
print(f"token: {token}")
logger.info("password=%s", mask(password))
url = f"https://api.example.com/?token={token}"
curl -H "Authorization: Bearer $TOKEN" https://api.example.com
curl -u "$USER:$PASS" https://example.com
mysql -u root -p shop < dump.sql
mysqldump -u root -p"$DB_PASS" shop
docker run -p 8080:80 nginx
mkdir -p /srv/app/data
ssh -p 2222 deploy@host
cp -p a b && ls -a
psql -h localhost -p 5432 -U app
redis-cli -p 6379 ping
git commit -m "Add token refresh"
export TOKEN=$(cat /run/secrets/token)
PASSWORD=${DB_PASSWORD:?missing}
echo "$PASSWORD" | docker login --password-stdin
kubectl create secret generic db --from-file=./db.env
sorted(items, key=lambda item: item.score)
key=value
x-primary-key: id
primary_key=True
foreign_key: user_id
partition_key = "tenant"
Token::Type kind = Token::Type::Identifier;
var sk-button = document.querySelector(".sk-spinner-pulse");
<div class="sk-fading-circle sk-child sk-circle12"></div>
<input type="password" name="password" placeholder="Your password">
<label for="password">Password</label>
<password></password>
SELECT password, token FROM users WHERE id = 5
ALTER TABLE users ADD COLUMN password_hash text
INSERT INTO tokens (id, name) VALUES (1, 'first')
GRANT SELECT ON orders TO reporting
assert password_validator("short") is False
token_type = "bearer"
max_tokens=512, temperature=0.2
tokens_used = prompt_tokens + completion_tokens
vocab["token"] = 17
ENTRYPOINT ["python", "-p", "app.py"]
subprocess.run(["git", "push", "--token-file", "x"])
""".strip().splitlines()

CONFIGURATION = r"""
password: required
password: ${DB_PASSWORD}
password: {{ .Values.db.password }}
token: ${{ secrets.GITHUB_TOKEN }}
api_key: <your-api-key>
API_KEY=your-api-key-here
API_KEY=xxxxxxxxxxxxxxxx
SECRET_KEY=changeme
password: "********"
password: ""
secret: !vault |
secretKeyRef: db-credentials
secretName: tls-cert
passwordSecretRef: name
tokenUrl: https://auth.example.com/oauth/token
token_endpoint: https://login.example.com/token
auth: none
auth: basic
authentication: enabled
credentials: include
cookie: optional
session: 30m
pin: false
passphrase: null
private_key: /etc/ssl/private/server.key
ssl_key = ./certs/server.pem
credentials_file: ~/.aws/credentials
"password": {"type": "string", "minLength": 8}
"token": {"type": "string", "description": "The access token"}
"required": ["username", "password"]
"token_count": 1024, "total_tokens": 2048
"usage": {"prompt_tokens": 120, "completion_tokens": 80}
"finish_reason": "stop", "max_tokens": 256
"pad_token": "[PAD]", "eos_token": "</s>", "unk_token": "<unk>"
"nextPageToken": "CAUQAA"
"token_type": "Bearer", "expires_in": 3600
integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==
resolved "https://npm.example.test/lodash/-/lodash-4.17.21.tgz#679591c564c3bffaae8454cf0b3df370c3d6911c"
checksum = "a1fc403891a21bcfb7c37834ba66a547a8f402146eba7265b5a6d88059c9ff2f"
image: nginx@sha256:0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31
requires-python = ">=3.11"
version = "1.2.3"
""".strip().splitlines()

PROSE = r"""
The password must be at least 8 characters long and contain a digit.
Reset your password by following the link in the mail.
Please enter your password: it is case-sensitive.
Invalid token: the signature does not match.
Password: must not be empty
Bearer token required
The token is missing or has expired.
The secret is to stir slowly.
The key is under the mat, he said.
His password is known to nobody.
API keys are created in the settings; each key is shown once.
Authentication failed: password incorrect
Error: token expired at 12:30
The tokenizer splits the text into 512 tokens.
A pass rate of 92 % (pass: 46, fail: 4)
We took the mountain pass: it was closed.
Pin: the map marker jumps when clicked
The session is stored for 30 days.
Cookies: we use them to remember your choice.
Basic English is enough to follow the course.
The bearer of this letter is my secretary.
risk-based, task-oriented, desk-sharing and ask-me-anything
This ask-and-answer session takes 45 minutes.
Please e-mail me when the phone home feature is ready.
He told me the secret: patience.
Order 12345-6789 shipped on 2026-11-20, invoice 2026-000123.
Reservation JG7FMM on flight HAT045, seat 12A.
Call volume rose from 1,200 to 1,450 (20.8 %).
Ratio 3:4, time 12:30:45, score 5:2
東京の天気は晴れです。
パスワードをお忘れの方はこちらをご覧ください。
パスワードは8文字以上で設定してください。
暗証番号は必須です。
密码不能为空，请重新输入。
Пароль должен содержать не менее восьми символов.
Das Passwort muss mindestens acht Zeichen lang sein.
El token de acceso ha caducado.
What is a token? A token is a piece of a word.
Use the password reset form or contact support.
How do I rotate an access key: open the console, then choose Security.
You can use key bindings such as ctrl-k to open the menu.
The api key is required for this endpoint.
The pin code is optional.
The code is 42 lines long.
My token budget is 8192 tokens.
the tokens are 512-dimensional
Set the secret in the environment, never in the code.
""".strip().splitlines()

NAMES = r"""
TMP/grace_kp_demo_x1/report.txt
TMP/grace_kp_demo_a81b2c/notes_2026.md
my_kp_report_2026.pdf
/var/lib/app/kp_cache_v2/index.db
kp_domain_setting = 3
grace_kp.integrations.langchain
kp_score_v2 and kp_level_10
https://example.com/docs/kp_guide_2026.html
test-sk-short
sk-learn-compatible-estimators
task-1234567890 is done
disk-usage-report-2026-11
mask-rcnn-resnet50-fpn-v2
risk-assessment-framework-version-2
npm_config_registry=https://npm.example.test
npm_lifecycle_script
hf_hub_download(repo_id="bert-base-uncased")
gsk_learning_rate
r8_unorm_texture_format
pk_index_on_orders
sk_index_customers_by_name
shop_at_home_2026
glance-api and glance-registry
xoxo, Anna
SG.action and SG.state
AIzawa Shouta
AKIA is the prefix of access keys at AWS.
ASIAPACIFICREGION2026X
eyJ is how a JSON web token begins.
ghp_ marks a classic personal token.
Chrome/120.0.0.0 Safari/537.36
Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36
uuid 123e4567-e89b-12d3-a456-426614174000
trace-id: 4bf92f3577b34da6a3ce929d0e0e4736
commit 3f786850e387550fdab836ed7e6dc881de23001b
git diff 27f19f5..3e44cc9
md5 d41d8cd98f00b204e9800998ecf8427e
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=
ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7
https://www.youtube.com/watch?v=dQw4w9WgXcQ
https://docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit
https://example.com/a?b=c&page=2#token-refresh
https://en.wikipedia.org/wiki/Password_(disambiguation)
https://github.com/org/repo/blob/main/src/token_store.py#L10-L20
s3://bucket/2026/11/20/part-00000-7d4f.snappy.parquet
arn:aws:iam::123456789012:role/deploy
projects/my-project/secrets/db-password/versions/3
com.example.auth.TokenProvider
ConvertSecureStringToPlainTextHelper2
getElementsByClassName
org.springframework.security.web.authentication
CVE-2024-12345 and RFC 7519
ISBN 978-3-16-148410-0
part number PN-4482-AX-9912
11111111-2222-3333-4444-555555555555
2026-11-20T12:00:00.000Z INFO step 3 of 7
C:\Windows\system32\drivers\etc\hosts
/usr/local/lib/python3.11/site-packages/token.py
1234567890123456
x[::2] and a::b1
00:1B:44:11:3A:B7
4111-1111-1111-1112
GB00 NWBK 6016 1331 9268 19
AbstractSingletonProxyFactoryBean
MIIS is the name of a server product.
the ATM at gate A3-12
the model gpt-4o-2024-08-06 and claude-sonnet-4
ft:gpt-4o-mini-2024-07-18:acme::9abcDEfG
chatcmpl-9x8y7z and call_abc123
toolu_01 and run_2026
thread_first_contact
""".strip().splitlines()

HARMLESS = [text.replace("TMP/", "/" + "tmp/") for text in CODE + CONFIGURATION + PROSE + NAMES]

# Structures: keys that look like those of secrets, and values under such keys that are none.
HARMLESS_VALUES = [
    {"max_tokens": 512, "total_tokens": 1024, "token_count": 7, "tokens": 12},
    {"token": 512, "tokens_per_second": 88.5},
    {"usage": {"prompt_tokens": 120, "completion_tokens": 80, "cached_tokens": 0}},
    {"token_type": "bearer", "tokenizer": "cl100k_base", "tokenization": "wordpiece"},
    {"password": None, "secret": "", "token": False},
    {"password": "string", "token": "str", "api_key": "required"},
    {"password": "${DB_PASSWORD}", "token": "<your-token>", "secret": "********"},
    {"password_policy": "strict", "password_min_length": 8, "password_changed": "2026-11-20"},
    {"has_password": True, "requires_token": "yes", "forgot_password_url": "https://example.com/reset"},
    {"author": "Bob", "authority": "root", "authenticated": True, "auth_method": "oauth"},
    {"passenger": "Ana Lopez", "passengers": 2, "passport_required": True, "compass": "north"},
    {"keyboard": "us", "key": "value", "primary_key": "id", "keywords": ["a", "b"]},
    {"pinned": True, "spin": 3, "mapping": {"a": "b"}, "shipping": "express"},
    {"secretary": "Ms Smith", "secret_santa": "Bob", "secretName": "tls-cert"},
    {"next_page_token": "CAUQAA", "page_token": "abc", "pad_token": "[PAD]"},
    {"session": "morning", "sessions": 3, "cookie_consent": "accepted"},
    {"name": "username", "value": "ana"},
    {"name": "password", "type": "string", "required": True},
    {"fields": ["username", "password"]},
    ["password", "email"],
    ["mysql", "-u", "root", "-p"],
    ["docker", "run", "-p", "8080:80", "nginx"],
    ["git", "log", "-p", "HEAD"],
    ["curl", "-u", "ana", "https://example.com"],
    ["--token-file", "/run/secrets/token"],
    {"type": "object", "properties": {"password": {"type": "string"}, "token": {"type": "string"}}},
    {"description": "The password of the user", "token": "The token of the session"},
    {"card": "ace of spades", "cards": 52, "card_type": "visa"},
    {"pin_count": 8, "pin": "5"},
    {"status": "token expired", "error": "invalid password"},
]
