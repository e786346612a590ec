"""Synthetic secrets in commands, configuration, logs, headers, addresses and sentences."""

from __future__ import annotations

from tests.trace.redaction.corpus import (
    ALNUM,
    BASE64,
    DIGITS,
    HEX,
    LOWNUM,
    URLSAFE,
    b64,
    github,
    luhn,
    password,
    pem,
    some,
    uid,
)


def contexts() -> list[tuple[str, str, str]]:
    """Label, text, and the secret in it: commands, configuration, logs, sentences."""
    rows: list[tuple[str, str, str]] = []

    def add(label: str, template: str, secret: str) -> None:
        rows.append((label, template.replace("{}", secret), secret))

    h, a = (lambda n: some(HEX, n)), (lambda n: some(ALNUM, n))
    for name in (
        "password=", "PASSWORD=", "DB_PASSWORD=", "export DB_PASS=", "PGPASSWORD=", "MYSQL_PWD=", "SMTP_PASSWORD: ", "db.password=", "spring.datasource.password=",
        "  password: ", "passwd: ", "pwd=", "passphrase = ", "user_pass=", "admin_password: ", "REDIS_PASSWORD=", "--from-literal=password=",
        "密码:", "密码：", "密碼: ", "口令：", "パスワード: ", "パスワード：", "暗証番号：", "пароль: ", "Пароль: ", "비밀번호: ", "contraseña: ", "mot de passe : ", "Passwort: ", "Kennwort: ", "senha: ", "wachtwoord: ", "hasło: ", "şifre: ",
        "new_password=", "passwordConfirm: ", "confirmPassword=", "oldPassword: ", "secret: ", "SECRET_KEY_BASE=", "otp_secret=", "mnemonic: ",
    ):  # fmt: skip
        add(name.strip(), name + "{}", some(DIGITS, 6) if name.startswith("暗証") else password())
    for name in (
        "api_key=", "API_KEY: ", "X-API-Key: ", "apikey=", "api-key: ", "client_secret=", "CLIENT_SECRET: ", "access_token=", "refresh_token: ", "auth_token=", "AWS_SECRET_ACCESS_KEY=",
        "aws_session_token = ", "TWILIO_AUTH_TOKEN=", "DATADOG_API_KEY=", "DD-API-KEY: ", "HEROKU_API_KEY=", "CLOUDFLARE_API_TOKEN=", "VERCEL_TOKEN=", "private_token: ", "signing_key=", "encryption_key: ",
        "consumer_secret=", "webhook_secret=", "session_id=", "JWT_SECRET=", "ACCOUNT_KEY=", "subscription-key: ", "Ocp-Apim-Subscription-Key: ", "license_key: ", "_authToken=", "MAPS_KEY_TOKEN: ", "bot_token=",
    ):  # fmt: skip
        add(name.strip(), name + "{}", a(32))
    add("Heroku", "HEROKU_API_KEY={}", uid())
    add("Snyk", "snyk_token: {}", uid())
    add("code", 'api_key = "{}"', a(40))
    add("code, single quotes", "const apiKey = '{}';", a(40))
    add("code, typed", 'password: str = "{}"', password())
    add("code, compared", 'if token == "{}":', a(24))
    add("code, wrapped", ['SecretStr("{}")  ', 'password=SecretStr("{}")'][1], password())
    add("code, Ruby", ":password => '{}'", password())
    add("code, Go", 'password := "{}"', password())
    add("code, keyword", 'connect(host="db", password="{}")', password())
    add("code, environment", 'os.environ["API_KEY"] = "{}"', a(30))
    add("PowerShell", '$env:TOKEN = "{}"', a(30))
    add("Java property", "-Dapp.password={}", password())
    add("Terraform", 'secret_key = "{}"', a(40))
    add("JSON", '{"user": "ana", "password": "{}"}', password())
    add("JSON in JSON", '{\\"user\\": \\"ana\\", \\"password\\": \\"{}\\"}', a(14))
    add("JSON twice in JSON", '\\\\\\"api_key\\\\\\": \\\\\\"{}\\\\\\"', a(24))
    add("log", "2026-01-02 12:00:00 INFO connecting with token={} to eu-1", a(32))
    add("query string", "GET /v1/users?api_key={}&page=2 HTTP/1.1", a(32))
    add("query string, token", "https://api.example.test/x?access_token={}", a(32))
    add("query string, key", "https://maps.example.test/js?key={}", a(32))
    add("form body", "grant_type=password&username=ana&password={}", a(12))
    add("encoded", "password%3D{}", a(12))
    add("multipart", 'Content-Disposition: form-data; name="password"\r\n\r\n{}\r\n--x', password())
    add("XML", "<password>{}</password>", password())
    add("XML attribute", '<add key="ApiKey" value="{}" />', a(32))
    add(
        "XML property",
        '<property name="hibernate.connection.password">{}</property>'.replace(">{}", ' value="{}">'),
        password(),
    )
    add("HTML form", '<input type="hidden" name="csrf_token" value="{}">', a(32))
    add("YAML list", "- name: DB_PASSWORD\n  value: {}", password())
    add("YAML block", "password: |\n  {}", password())
    add("TOML", 'token = "{}"', a(32))
    add(".npmrc", "//npm.example.test/:_authToken={}", uid())
    add(".pypirc", "[pypi]\nusername = ana\npassword = {}", password())
    add(".netrc", "machine api.example.test login ana password {}", password())
    add(".netrc in lines", "machine api.example.test\n  login ana\n  password {}", password())
    add(".pgpass", "db.example.test:5432:shop:ana:{}", a(16))
    add("htpasswd", "ana:{}", "$apr1$" + a(8) + "$" + some(ALNUM + "./", 22))
    add("shadow", "ana:{}:19000:0:99999:7:::", f"$6${a(16)}${some(ALNUM + './', 86)}")
    add("Docker configuration", '{"auths": {"r.example.test": {"auth": "{}"}}}', b64("ana:" + password()))
    add("kubeconfig", "    client-key-data: {}", b64(pem())[:120])
    add("Kubernetes secret", "kind: Secret\nmetadata:\n  name: db\ndata:\n  db: {}", b64(password()))
    add("WireGuard", "PrivateKey = {}", some(BASE64, 43) + "=")
    add("curl -u", "curl -u ana:{} https://api.example.test/v1", password().replace("!", "x"))
    add("curl --user", 'curl -s --user "ana:{}" https://api.example.test', password())
    add("curl header", 'curl -H "Authorization: Bearer {}" https://api.example.test', a(40))
    add("curl key header", "curl -H 'X-Api-Key: {}' https://api.example.test", a(32))
    add("curl PRIVATE-TOKEN", 'curl --header "PRIVATE-TOKEN: {}" https://git.example.test', a(20))
    add("wget", "wget --user=ana --password={} https://example.test/x", a(12))
    add("mysql -p", "mysql -u root -p{} shop", a(12))
    add("mysqldump -p", "mysqldump --host db -uroot -p'{}' shop > x.sql", password())
    add("mysql --password", "mysql --password={} shop", a(12))
    add("psql", "PGPASSWORD={} psql -h db shop", a(12))
    add("sshpass", "sshpass -p {} ssh root@host", a(12))
    add("sshpass, quoted", "sshpass -p '{}' scp x root@host:", password())
    add("redis-cli", "redis-cli -h cache -a {} ping", a(20))
    add("mongosh", "mongosh -u admin -p {} --authenticationDatabase admin", a(14))
    add("docker login", "docker login -u ana -p {} r.example.test", a(14))
    add("az login", "az login --service-principal -u x --password {}", a(30))
    add("aws configure", "aws configure set aws_secret_access_key {}", some(ALNUM, 40))
    add("vault login", "vault login {}", "hvs." + a(40))
    add("npm config", "npm config set //npm.example.test/:_authToken {}", a(36))
    add("ldapsearch", "ldapsearch -x -D cn=admin -w {} -b dc=x", a(12))
    add("sqlcmd", "sqlcmd -S db -U sa -P {}", a(12))
    add("openssl", "openssl rsa -in k.pem -passin pass:{}", a(12))
    add("keytool", "keytool -list -keystore k.jks -storepass {}", a(12))
    add("zip", "zip -P {} x.zip x.txt", a(12))
    add("7z", "7z x a.7z -p{}", a(12))
    add("gpg", "gpg --batch --passphrase {} -d x.gpg", a(14))
    add("htpasswd -b", "htpasswd -b .htpasswd ana {}", a(12))
    add("sudo -S", "echo {} | sudo -S apt update", a(12))
    add("chpasswd", 'echo "ana:{}" | chpasswd', a(12))
    add("smbclient", "smbclient //srv/share -U ana%{}", a(12))
    add("plink", "plink -ssh root@host -pw {}", a(12))
    add("mosquitto", "mosquitto_pub -u ana -P {} -t x -m y", a(12))
    add("rabbitmqctl", "rabbitmqctl add_user ana {}", a(12))
    add("option", "deploy --api-token {} --env prod", a(24))
    add("option with =", "deploy --token={} --env prod", a(24))
    add("SQL create", "CREATE USER ana IDENTIFIED BY '{}'", password())
    add("SQL alter", "ALTER ROLE ana WITH PASSWORD '{}';", password())
    add("bearer", "Authorization: Bearer {}", a(40))
    add("bearer, lower case", "authorization: bearer {}", a(40))
    add("basic", "Authorization: Basic {}", b64("ana:" + password()))
    add("token header", "Authorization: token {}", h(40))
    add("proxy header", "Proxy-Authorization: Basic {}", b64("ana:" + password()))
    add("cookie", "Cookie: theme=dark; session={}", a(32))
    add("set-cookie", "Set-Cookie: connect.sid=s%3A{}; Path=/; HttpOnly", a(40))
    add("PHP session", "PHPSESSID={}", some(LOWNUM, 26))
    add("Splunk", "Authorization: Splunk {}", uid())
    add("SSH password", "root@203.0.113.7 password: {}", password())
    add("sentence", "The password is {}.", password())
    add("sentence, my", "my password is {}, please log in for me", password())
    add("sentence, set to", "I changed the database password to {}", password()) if False else add(
        "sentence, set to", "The admin password was changed to {}", password()
    )
    add("sentence, key", "Use the API key {} for now", a(32))
    add("sentence, token", "your token is {}", a(32))
    add("sentence, PIN", "the PIN is {}", "4821")
    add("sentence, OTP", "Your verification code is {}.", "482910")
    add("sentence, login", "log in as admin / {}", password())
    add("sentence, user and password", "username: ana, password: {}", password())
    add("sentence, user password", "user ana password {}", password())
    add("Japanese sentence", "パスワードは{}です。", a(12))
    add("Japanese sentence, quoted", "パスワードは「{}」です", a(12))
    add("Chinese sentence", "密码是{}", a(12))
    add("Russian sentence", "Мой пароль: {}", password())
    add("Markdown", "**Password:** `{}`", password())
    add("Markdown key", "- API key: `{}`", a(32))
    add("CVV", "cvv: {}", "737")
    add("card", "card number: {}", luhn("4", 16))
    add("vendor, no word", "SENTRY = '{}'", h(64))
    add("vendor, key", "datadog: {}", h(40))
    add("in quotes after a newline", '"secret":\n    "{}"', a(24))
    add("a terminal's colours", "\x1b[32m{}\x1b[0m", github("ghp"))
    add("after an escape", "first line\\n{}", github("ghp"))
    add("percent-encoded", "?next=%2Fx%3D{}", github("ghp"))
    add("in Japanese text", "鍵は{}です", "sk-proj-" + a(48))
    add("Telegram call", "https://api.telegram.org/bot{}/getMe", f"{some('123456789', 10)}:AA{some(URLSAFE, 33)}")
    for template in MORE + PLACES:
        add(template, template, some(ALNUM, 12))
    return rows


MORE = [
    "git clone https://oauth2:{}@gitlab.example.com/x/y.git",
    "define('DB_PASSWORD', '{}');",
    '<Pass encoding="base64">{}</Pass>',
    'network={ssid="x" psk="{}"}',
    "ansible_become_pass={}",
    'terraform apply -var="db_password={}"',
    "docker run -e POSTGRES_PASSWORD={} postgres",
    "helm install x --set auth.password={}",
    'psql "host=db user=a password={}"',
    "sqlplus scott/{}@orcl",
    "net user ana {} /add",
    "xfreerdp /u:ana /p:{} /v:host",
    'ConvertTo-SecureString "{}" -AsPlainText -Force',
    "setenv API_TOKEN {}",
    "set -x GITHUB_TOKEN {}",
    'page.fill("#password", "{}")',
    "driver.find_element(By.ID, 'password').send_keys('{}')",
    "use {} as the password",
    "password {}",
    "The credentials are admin:{}",
    "credentials: admin:{}",
    "login: admin, pass: {}",
    "user=admin&pass={}&submit=1",
    "ftp://user:{}@ftp.example.com/",
    "jdbc:mysql://db:3306/x?user=a&password={}",
    "jdbc:postgresql://db/x?user=a&password={}",
    "mongodb://a:{}@h1,h2/db?replicaSet=r",
    "amqp://guest:{}@mq//",
    "X-Auth-Token: {}",
    "X-Vault-Token: {}",
    "Api-Key: {}",
    "x-functions-key: {}",
    "Cookie: sid={}",
    "Set-Cookie: auth={}; HttpOnly",
    "Authorization: ApiKey {}",
    "Authorization: Token token={}",
    "Authorization: {}",
    "--password '{}'",
    "--password={}",
    "mysql -h db -u root -p{}",
    "mysql --user=root --password={}",
    "mongo --username a --password {}",
    "redis-cli -a {}",
    "REDISCLI_AUTH={} redis-cli",
    "echo '{}' | docker login -u ana --password-stdin",
    "curl -u ana:{} x",
    "curl --user ana:{} x",
    "curl -uana:{} x",
    "http -a ana:{} GET x",
    "wget --http-password={} x",
    "rsync --password-file=x; RSYNC_PASSWORD={}",
    "sshpass -p{} ssh x",
    "密码：{}",
    "密码是 {}",
    "您的密码为{}",
    "パスワード:{}",
    "パスワードは {} です",
    "PW: {}",
    "暗証番号は {}",
    "пароль {}",
    "Пароль: {}",
    "mot de passe: {}",
    "contraseña: {}",
    "Kennwort: {}",
    "senha: {}",
    "비밀번호: {}",
    "password = '{}'",
    '$password = "{}";',
    '"password":"{}"',
    "{\"password\":'{}'}",
    "password => '{}'",
    "'password' => '{}',",
    ":password: {}",
    "password: {}",
    "password:\t{}",
    "PASSWORD {}",
    "secret_key_base: {}",
    '<add key="Password" value="{}"/>',
    '<connectionStrings><add connectionString="Server=x;Password={}"/>',
    "machine x login y password {}",
    '"auth": "{}"',
    "_auth={}",
    "requests.get(url, auth=('bob', '{}'))",
    'session.auth = HTTPBasicAuth("bob", "{}")',
    "aws_secret_access_key = {}",
    "AWS_SESSION_TOKEN={}",
    "azure_client_secret={}",
    "AZURE_STORAGE_KEY={}",
    "GCP_PRIVATE_KEY={}",
    "STRIPE_KEY={}",
    "SENDGRID_KEY={}",
    "ALGOLIA_ADMIN_KEY={}",
    "APP_KEY={}",
    "DEPLOY_KEY: {}",
    "PUSHER_APP_SECRET={}",
    "api.key={}",
    "apikey {}",
    "token {}",
    "Your one-time password is {}",
    "OTP: {}",
    "pin: {}",
    "recovery code: {}",
    "license key: {}",
    "passphrase '{}'",
    "unlock with passphrase {}",
    "IDENTIFIED BY '{}'",
    "WITH PASSWORD '{}'",
    "SET PASSWORD FOR 'a'@'%' = '{}'",
    "ALTER USER a PASSWORD '{}'",
    "PASSWORD('{}')",
    "https://example.com/reset?token={}",
    "https://example.com/?access_token={}#x",
    "https://example.com/cb#access_token={}&x",
    "https://example.com/?apikey={}",
    "https://example.com/?key={}",
    "https://example.com/?pwd={}",
    "wss://x/?auth={}",
    "zip -P {} a.zip b",
    "7z a -p{} a b",
    "unrar x -p{} a",
    "gpg --passphrase {}",
    "keytool -storepass {}",
    "ssh-keygen -N {} -f x",
    "htpasswd -bc f u {}",
    'echo "root:{}" | chpasswd',
    "echo {} | sudo -S ls",
    "The password for admin is {}",
    "Password: {} (temporary)",
    "temporary password is {}",
    "new password: {}",
    "root password={}",
    "wifi password: {}",
    "My SSN is 536-90-4399 and password is {}",
    "default credentials: admin / {}",
    "username admin password {}",
    "user: admin pass: {}",
    "log in with user admin and password {}",
    "private_key_id: {}",
    "client_secret: {}",
    "ClientSecret={}",
    "consumerSecret: {}",
    "encryption.key={}",
    "hmac_key={}",
    "signature_secret={}",
    "session_secret={}",
    "cookie_secret={}",
    "jwt.secret={}",
    "webhook signing secret: {}",
    "NEXTAUTH_SECRET={}",
    "FLASK_SECRET={}",
    "RAILS_MASTER_KEY={}",
    "LARAVEL_KEY={}",
    "salt: x; secret={}",
]

# Secrets named by their column, their group or their label, and values that go over several lines.
PLACES = [
    "user,password,city\nana,{},Rome\nbob,{},Oslo\n",
    "user,password,city\r\nana,{},Rome\r\nbob,{},Oslo\r\n",
    "user;password;city\nana;{};Rome\n",
    '"user","password","city"\n"ana","{}","Rome"\n',
    'user,password,city\n"Doe, Ana","{}","Rome, IT"\n"x","{}",y',
    'user,note,password\nana,"first\nsecond",{}\nbob,x,{}\n',
    'user,password\nana,"{}\n{}"\nbob,{}\n',
    "password,user\n{},ana\n{},bob",
    "user,password,api_key\nana,{},{}\n",
    "Here is the export, as you asked:\n\nuser,password\nana,{}\nbob,{}\n\nLet me know, thanks, if you need more.",
    "    user,password\n    ana,{}\n    bob,{}\n",
    "```csv\nuser,password\nana,{}\n```",
    "user, password, city\nana, {}, Rome\n",
    "user,password\nbob,{}",
    "id,user,password,city\n1,ana,{},Rome\n2,bob,{}",
    "# export\nuser,password\nana,{}",
    "user|password|city\nana|{}|Rome\n",
    "key,value\nuser,ana\npassword,{}\n",
    "Name,Login,Passwort,Ort\nAna,ana1,{},Rom\n",
    "Username,Login Password,Last Login\nana,{},2026-01-01\n",
    "name,url,username,password,note\nexample.com,https://example.com/login,ana@example.com,{},\n",
    "url,username,password,totp,extra,name,grouping,fav\nhttps://a.example,ana,{},,,A,,0\n",
    "folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp\n,,login,Mail,,,0,https://m.example,ana,{},\n",
    "User name,Access key ID,Secret access key\nana,x,{}\n",
    "User Name,Password,Console login link\nana,{},https://x.signin.aws.example.com/console\n",
    "user\tpassword\nana\t{}\n",
    "id\tuser\tpassword\temail\n1\tana\t{}\ta@b\n2\tbob\t{}\tb@c\n",
    "| user | password |\n|--|--|\n| ana | {} |\n",
    "| user | password | role |\n|:---|:---:|---:|\n| ana | `{}` | admin |\n| bob | **{}** | user |\n",
    "user | password\n--- | ---\nana | {}\nbob | {}\n",
    "The users:\n\n| User | Password |\n|---|---|\n| ana | {} |\n\nDone.",
    "| **User** | **Password** |\n|---|---|\n| ana | {} |",
    "| `user` | `db_password` |\n|---|---|\n| ana | {} |",
    "- Users:\n\n  | user | password |\n  |------|----------|\n  | ana  | {} |\n",
    "> | user | password |\n> |------|----------|\n> | ana  | {} |\n",
    "| Field | Value |\n|---|---|\n| User | ana |\n| Password | {} |\n| Host | db |\n",
    "| Setting | Value | Notes |\n|---|---|---|\n| DB_PASSWORD | `{}` | rotate soon |\n",
    "| | |\n|---|---|\n| Username | ana |\n| Password | {} |\n",
    "| | staging | prod |\n|---|---|---|\n| user | ana | bob |\n| password | {} | {} |\n",
    " user | password\n------+---------------\n ana  | {}\n(1 row)",
    " id | user | password | x\n----+------+---------------+---\n  1 | ana  | {} | 1\n  2 | bob  | {} | 2\n(2 rows)\n",
    " password \n----------\n {}\n {}\n(2 rows)",
    "-[ RECORD 1 ]---------\nuser     | ana\npassword | {}\n-[ RECORD 2 ]---------\nuser     | bob\npassword | {}\n",
    "shop=# select * from users;\n user | password\n------+---------------\n ana  | {}\n(1 row)\n\nshop=# ",
    "+------+---------------+\n| user | password      |\n+------+---------------+\n| ana  | {} |\n| bob  | {} |\n+------+---------------+\n2 rows in set (0.00 sec)\n",
    "*************************** 1. row ***************************\n    user: ana\npassword: {}\n",
    "+---------------+\n| password      |\n+---------------+\n| {} |\n+---------------+",
    "    user = ana\npassword = {}\n",
    "user|password\nana|{}\n",
    "user  password     \n----  -------------\nana   {}\nbob   {}\n",
    "USER    PASSWORD        ROLE\nana     {}   admin\nbob     {}   user\n",
    "NAME   NAMESPACE   TOKEN           AGE\nci     default     {}   3d\n",
    "  user       password\n0  ana  {}\n1  bob   {}\n",
    "<tr><th>user</th><th>password</th></tr><tr><td>ana</td><td>{}</td></tr>",
    '<table border=1>\n <thead>\n  <tr>\n   <th>user</th>\n   <th scope="col">Password</th>\n  </tr>\n </thead>\n <tbody>\n  <tr>\n   <td>ana</td>\n   <td><code>{}</code></td>\n  </tr>\n  <tr><td>bob</td><td class=\'x\'> {} </td></tr>\n </tbody>\n</table>',
    "<table><tr><td>user</td><td>password</td></tr><tr><td>ana</td><td>{}</td></tr></table>",
    "<table><tr><th>User</th><td>ana</td></tr><tr><th>Password</th><td>{}</td></tr></table>",
    "<table><tr><td>User:</td><td>ana</td></tr><tr><td>Password:</td><td>{}</td></tr></table>",
    "<dl><dt>User</dt><dd>ana</dd><dt>Password</dt><dd>{}</dd></dl>",
    "┌──────┬───────────────┐\n│ user │ password      │\n├──────┼───────────────┤\n│ ana  │ {} │\n└──────┴───────────────┘\n",
    "┏━━━━━━┳━━━━━━━━━━━━━━━┓\n┃ user ┃ password      ┃\n┡━━━━━━╇━━━━━━━━━━━━━━━┩\n│ ana  │ {} │\n└──────┴───────────────┘\n",
    "╔══════╦═══════════════╗\n║ user ║ password      ║\n╠══════╬═══════════════╣\n║ ana  ║ {} ║\n╚══════╩═══════════════╝",
    "====  =============\nuser  password\n====  =============\nana   {}\n====  =============\n",
    "+------+---------------+\n| user | password      |\n+======+===============+\n| ana  | {} |\n+------+---------------+\n",
    "| user | password |\n|------+----------|\n| ana  | {} |\n",
    "|===\n|user |password\n\n|ana |{}\n|===",
    "user & password \\\\\nana & {} \\\\\n",
    "INSERT INTO users (name, password, city) VALUES ('ana', '{}', 'Rome')",
    "INSERT INTO users (id, name, password) VALUES\n  (1, 'ana', '{}'),\n  (2, 'O''Brien, x', '{}');",
    "INSERT INTO `users` (`name`, `password`) VALUES ('ana', '{}');",
    'insert into public."Users" ("name", "password") values (E\'ana\', \'{}\') returning id;',
    "INSERT INTO users (name, password, at) VALUES ('ana', crypt('{}', gen_salt('bf')), NOW())",
    "INSERT INTO users (name, pwd) VALUES ('ana', MD5('{}'))",
    "INSERT INTO users (name, password) SELECT 'ana', '{}'",
    "INSERT IGNORE INTO users(user,pass)VALUES('ana','{}')",
    "INSERT OR REPLACE INTO users (name, api_key) VALUES ('ana', '{}');",
    'cur.execute("INSERT INTO users (name, password) VALUES (\'ana\', \'{}\')")',
    '{"sql": "INSERT INTO users (name, password) VALUES (\\"ana\\", \\"{}\\")"}',
    '{"sql": "INSERT INTO users (name, password)\\nVALUES (\'ana\', \'{}\')"}',
    "UPDATE users SET password = '{}', x = 1 WHERE id = 3",
    "COPY public.users (id, name, password) FROM stdin;\n1\tana\t{}\n2\tbob\t{}\n\\.\n",
    '{"stdout": "user,password\\nana,{}\\n", "code": 0}',
    '{"stdout": "password,user\\n{},ana\\n", "code": 0}',
    '{"r": "{\\"stdout\\": \\"user,password\\\\nana,{}\\\\nbob,{}\\", \\"x\\": 1}"}',
    '{"text": "| user | password |\\n|--|--|\\n| ana | {} |\\n", "z": 2}',
    "{'stdout': 'user,password\\nana,{}\\n', 'code': 0}",
    '"user\\tpassword\\nana\\t{}\\n"',
    '{"stdout": "\\"user\\",\\"password\\"\\n\\"ana\\",\\"{}\\"\\n", "code": 0}',
    '{"html": "<tr><th>user</th><th class=\\"x\\">password</th></tr>\\n<tr><td>ana</td><td class=\\"y\\">{}</td></tr>"}',
    '[{"content": " user | password\\n------+---------------\\n ana  | {}\\n(1 row)"}]',
    '{"columns": ["user", "password"], "rows": [["ana", "{}"], ["bob", "{}"]]}',
    '[["user", "password"], ["ana", "{}"]]',
    "[('user', 'password'), ('ana', '{}')]",
    "2026-01-01 INFO dump follows\nuser,password\nana,{}\n2026-01-01 INFO end",
    "user,Passwort,city\nana,{},Rome\n",
    "user,Kennwort,city\nana,{},Rome\n",
    "user,Contraseña,city\nana,{},Rome\n",
    "user,contrasena,city\nana,{},Rome\n",
    "user,clave,city\nana,{},Rome\n",
    "user,senha,city\nana,{},Rome\n",
    "user,wachtwoord,city\nana,{},Rome\n",
    "user,hasło,city\nana,{},Rome\n",
    "user,haslo,city\nana,{},Rome\n",
    "user,пароль,city\nana,{},Rome\n",
    "user,Пароль,city\nana,{},Rome\n",
    "user,パスワード,city\nana,{},Rome\n",
    "user,暗証番号,city\nana,{},Rome\n",
    "user,密码,city\nana,{},Rome\n",
    "user,密碼,city\nana,{},Rome\n",
    "user,口令,city\nana,{},Rome\n",
    "user,비밀번호,city\nana,{},Rome\n",
    "user,şifre,city\nana,{},Rome\n",
    "user,parola,city\nana,{},Rome\n",
    "user,lösenord,city\nana,{},Rome\n",
    "user,losenord,city\nana,{},Rome\n",
    "user,passord,city\nana,{},Rome\n",
    "user,adgangskode,city\nana,{},Rome\n",
    "user,salasana,city\nana,{},Rome\n",
    "user,heslo,city\nana,{},Rome\n",
    "user,jelszó,city\nana,{},Rome\n",
    "user,parolă,city\nana,{},Rome\n",
    "user,lozinka,city\nana,{},Rome\n",
    "user,geslo,city\nana,{},Rome\n",
    "user,slaptažodis,city\nana,{},Rome\n",
    "user,lykilorð,city\nana,{},Rome\n",
    "user,parool,city\nana,{},Rome\n",
    "user,패스워드,city\nana,{},Rome\n",
    "user,登录密码,city\nana,{},Rome\n",
    "user,パスコード,city\nana,{},Rome\n",
    "user,пароль_бд,city\nana,{},Rome\n",
    "user,mot de passe,city\nana,{},Rome\n",
    "user,Mot de passe,city\nana,{},Rome\n",
    "user,palavra-passe,city\nana,{},Rome\n",
    "user,كلمة المرور,city\nana,{},Rome\n",
    "user,رمز عبور,city\nana,{},Rome\n",
    "user,סיסמה,city\nana,{},Rome\n",
    "user,รหัสผ่าน,city\nana,{},Rome\n",
    "user,पासवर्ड,city\nana,{},Rome\n",
    "user,parola d'ordine,city\nana,{},Rome\n",
    "password: |\n  {}\n  {}\nuser: ana\n",
    "client_secret: >-\n  {}\n  {}\nuser: ana\n",
    "db:\n  password: |2-\n      {}\n      {}\n  user: ana\n",
    "password: |  # secret\n  {}\n  {}\nuser: ana",
    "password: |\n  {}\n\n  {}\nuser: ana",
    "password:\n  {}\nuser: ana",
    'password:\n  "{}"\nuser: ana',
    "password: |\r\n  {}\r\n  {}\r\nuser: ana\r\n",
    "- name: x\n  password: >\n    {}\n    {}\n- name: y",
    '{"y": "password: |\\n  {}\\n  {}\\nuser: ana\\n"}',
    "password: !!str |\n  {}\n  {}\nuser: ana",
    "export API_TOKEN={}\\\n{}\n",
    'export API_TOKEN="{}\\\n{}"\n',
    "db.password={}\\\n    {}\n",
    'password = (\n    "{}"\n    "{}"\n)\n',
    'password = ("{}" "{}")',
    'password = "{}" "{}"\n',
    'password = "{}" + "{}"\n',
    'password = "{}" + \\\n    "{}"\n',
    'password = "{}" \\\n    "{}"\n',
    "$password = '{}' . '{}';",
    "const password = '{}' +\n  '{}';",
    'password = "{}" & "{}"',
    "const password = `{}\n{}`\n",
    'password = """\n{}\n{}\n"""',
    "password = '''{}\n{}'''",
    'password = """\n{}\n{}"""\nuser = "x"',
    "PASSWORD=$(cat <<EOF\n{}\n{}\nEOF\n)\n",
    "password = <<-EOT\n  {}\n  {}\nEOT\n",
    "$password = <<<EOT\n{}\n{}\nEOT;\n",
    'PASSWORD="{}\n{}"\nUSER=x',
    'password: "{}\n  {}"\nuser: ana',
    "Password:\n```\n{}\n```\n",
    'const char *password =\n    "{}"\n    "{}";',
    "passwords:\n  - {}\n  - {}\nuser: ana",
    'passwords:\n- {}\n- "{}"\nuser: ana',
    "passwords:\n  ana: {}\n  bob: {}\nuser: ana",
    'secrets:\n  db: {}\n  mail: "{}"\nversion: 3',
    "secrets:\n  prod:\n    db: {}\n  dev:\n    db: {}\nversion: 3",
    "passwords: {ana: {}, bob: {1}}",
    "passwords: [{}, {}]",
    '{"passwords": [\n  "{}",\n  "{}"\n]}',
    '{"passwords": {"ana": "{}", "bob": "{}"}}',
    '{\n  "secrets": {\n    "db": "{}",\n    "mail": "{}"\n  },\n  "x": 1\n}',
    "PASSWORDS = {\n    'ana': '{}',\n    'bob': '{}',\n}",
    "passwords = [\n    '{}',\n    '{}',\n]",
    "passwords = ('{}', '{}')",
    "passwords = dict(ana='{}', bob='{}')",
    '[secrets]\ndb = "{}"\nmail = \'{}\'\n\n[other]\nx = 1\n',
    "[passwords]\nana = {}\nbob={}\n[other]\nx=1\n",
    "[credentials]\nana: {}\n",
    '[app.secrets]\ndb = "{}"\n',
    '[secrets.prod]\ndb = "{}"\n',
    'secrets = { db = "{}", mail = "{}" }',
    "## Passwords\n\n- ana: {}\n- bob: {}\n\n## Other\n",
    "Passwords:\n{}\n{}\n\nThanks",
    "Passwords:\n- {}\n- {}\n\nThanks",
    "Passwords:\n1. {}\n2. {}\n",
    "Passwords:\nana - {}\nbob - {}\n",
    '{"cfg": "secrets:\\n  db: {}\\n  mail: {}\\nx: 1"}',
    "Password [{}]",
    "User [ana]  Password [{}]  [Sign in]",
    "<input name=password value={}>",
    '<input type="password" value="{}">',
    '<input value="{}" name="password" type="text">',
    '<input id="user-password" class="x" value="{}"/>',
    '{"html": "<input name=\\"password\\" class=\\"a\\" value=\\"{}\\">"}',
    '<textarea name="secret">{}</textarea>',
    "<label>Password</label> <span>{}</span>",
    '- textbox "Password" [ref=e5]: {}',
    'textbox "Password" [active] [ref=e5]: "{}"',
    "user=ana&password={}&x=1",
    "user%3Dana%26password%3D{}%26x%3D1",
    '------x\r\nContent-Disposition: form-data; name="password"\r\n\r\n{}\r\n------x--',
    "password\n: {}\n",
    "Password\n:   {}\n\nUser\n:   ana\n",
    "Password:: {}",
    "What is the password? It's {}.",
    "Q: password\nA: {}",
    "Q: What is the password?\nA: {}",
    "What's the wifi password? {}",
    "Q: password A: {}",
    "AUTH {}",
    "AUTH default {}",
    "127.0.0.1:6379> AUTH ana {}\nOK",
    "requirepass {}",
    "masterauth {}",
    "HELLO 3 AUTH default {}",
    "USER ana\r\nPASS {}\r\n",
    "a1 LOGIN ana {}",
    'a1 LOGIN "ana" "{}"',
    "/msg NickServ IDENTIFY {}",
    "SELECT crypt('{}', gen_salt('bf'))",
    "SELECT PASSWORD('{}')",
    "WHERE pw = md5('{}')",
    "SET x = SHA2('{}', 256)",
    "CREATE USER ana IDENTIFIED BY '{}'",
    "GRANT ALL ON *.* TO 'a'@'%' IDENTIFIED WITH mysql_native_password BY '{}'",
    "bcrypt.hashpw(b'{}', bcrypt.gensalt())",
    "u.password = make_password('{}')",
    "Password - {}",
    "Password – {}",
    "password -> {}",
    "password equals {}",
    "* Password\n  {}",
    "**Password**\n{}",
    "### Password\n\n`{}`",
    "Username\nana\nPassword\n{}\n",
    "user,city\nana,Rome\n\nuser,password\nana,{}\n",
    "\ufeffuser,password\nana,{}\n",
    "Convert this:\nuser,password\nana,{}\nbob,{}\nto JSON.",
    'public string SmtpPassword { get; set; } = "{}";',
    'var dbPassword string = "{}"',
    'config.setPassword("{}");',
    "const token = process.env.TOKEN || '{}';",
    'TOKEN="${TOKEN:-{}}"',
    'app --smtp-password \\\n  "{}"',
    "app.client_secret=\\\n    {}\n",
    "Das Passwort für den Server lautet {}\n",
    "Votre mot de passe provisoire est {}\n",
    "Password for user ana: {}\n",
    "I changed the password of ana to {}.",
    "enable secret {}\n",
    "bindpw {}\nbase dc=example",
    "Credentials for db01.internal: ana / {}",
    'gh secret set API_KEY --body "{}"',
    'expect { "assword:" { send "{}\\r" } }',
    "mysqli_connect('host', 'ana', '{}', 'shop')",
]  # fmt: skip


CONTEXTS = contexts()
