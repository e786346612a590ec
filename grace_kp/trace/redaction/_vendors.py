"""The formats of keys and tokens by vendor. The formats are public facts; the table says nothing about where a key is used.

Each row: vendor, lower-case strings of which a match contains at least one, the format, and what the format alone does not decide:
`random` rows match only what looks generated, because words of ordinary text have the same shape.
A match must not follow a letter or a digit, and takes the rest of its word with it, so that no half of a key stays behind.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from grace_kp.trace.redaction._names import looks_random
from grace_kp.trace.redaction._rule import RedactionRule


class Format(NamedTuple):
    """One row: see above. `word` is an expression that every match contains, where `needs` are frequent."""

    vendor: str
    needs: str
    pattern: str
    random: bool = False
    word: str | None = None


_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

CLOUDS: tuple[Format, ...] = (
    Format("AWS", "akia", r"AKIA[A-Z0-9]{12,}"),
    Format("AWS", "asia aroa aida abia acca agpa anpa anva aipa apka asca a3t", r"(?:ASIA|AROA|AIDA|ABIA|ACCA|AGPA|ANPA|ANVA|AIPA|APKA|ASCA|A3T[A-Z0-9])(?=[A-Z]{0,16}[0-9])[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Format("AWS Bedrock", "absk", r"ABSK[A-Za-z0-9+/]{60,}={0,2}"),
    Format("AWS Bedrock", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=_-]{20,}"),
    Format("AWS session token", "iqojb3jpz2lu fwo fqo", r"(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz|F[wQ]oDYXdz)[A-Za-z0-9+/=_%-]{20,}"),
    Format("AWS marketplace", "amzn.mws.", rf"amzn\.mws\.{_UUID}"),
    Format("AWS Login with Amazon", "amzn1.oa2-cs.", r"amzn1\.oa2-cs\.v1\.[A-Za-z0-9]{30,}"),
    Format("Google API", "aq.ab", r"AQ\.Ab[A-Za-z0-9_-]{30,}"),
    Format("Google OAuth access", "ya29.", r"ya29\.[A-Za-z0-9_.-]{20,}"),
    Format("Google OAuth refresh", "1//0", r"1//0[A-Za-z0-9_-]{30,}", random=True),
    Format("Firebase messaging", "aaaa", r"AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{100,}"),
    Format("Azure AD", "q~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{28,}", word=r"[0-9]Q~[A-Za-z0-9_~.-]{6}"),
    Format("Azure AI services", "jqqj99", r"[A-Za-z0-9]{40,60}JQQJ99[A-Za-z0-9]{10}A[A-Za-z0-9]{12,}"),
    Format("Azure keys with a signature", "azfu +amc +ast azca +asb +aeh +arm +acr azse aiot apim acdb", r"[A-Za-z0-9+/]{32,90}(?:AzFu|\+AMC|\+ASt|AzCa|\+ASb|\+AEh|\+ARm|\+ACR|AzSe|AIoT|APIM|ACDb)[A-Za-z0-9+/]{5,12}(?:={0,2})(?![A-Za-z0-9+/=])"),
    Format("Azure DevOps", "azdo", r"[A-Za-z0-9]{70,80}AZDO[A-Za-z0-9]{4}"),
    Format("Azure key in base64", "==", r"(?<!sha512-)(?<!sha512:)(?<!integrity=)(?<!digest=)[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])", random=True, word=r"[A-Za-z0-9+/]{6}=="),
    Format("Volcengine", "aklt", r"AKLT[A-Za-z0-9]{30,}", random=True),
    Format("Alibaba", "ltai", r"LTAI[A-Za-z0-9]{12,24}", random=True),
    Format("Tencent", "akid", r"AKID[A-Za-z0-9]{28,36}", random=True),
    Format("Yandex", "aqvn", r"AQVN[A-Za-z0-9_-]{35,}"),
    Format("Yandex", "t1.", r"t1\.[A-Za-z0-9_-]{16,}={0,2}\.[A-Za-z0-9_-]{60,}={0,2}"),
    Format("Yandex", "yc", r"YC[A-Za-z0-9_-]{38}(?![A-Za-z0-9_-])", random=True, word=r"YC[A-Za-z0-9_-]{38}"),
    Format("DigitalOcean", "_v1_", r"do[oprsc]_v1_[a-f0-9]{32,}"),
    Format("DigitalOcean Spaces", "do00", r"DO00[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Format("Backblaze", "k00", r"K00[0-9][A-Za-z0-9+/]{26,28}(?![A-Za-z0-9+/])", random=True),
    Format("Scaleway", "scw", r"SCW[A-Z0-9]{17}(?![A-Za-z0-9])", random=True),
    Format("Fly.io", "fm1 fm2", r"fm[12][ar]?_[A-Za-z0-9+/=]{40,}"),
    Format("Vercel", "vcp_ vci_ vca_ vcr_ vck_", r"vc[piark]_[A-Za-z0-9]{24,}", random=True),
    Format("Netlify", "nfp_ nfc_ nfo_ nfu_ nfb_", r"nf[pcoub]_[A-Za-z0-9]{30,}", random=True),
    Format("Render", "rnd_", r"rnd_[A-Za-z0-9]{24,}", random=True),
    Format("Cloudflare", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    Format("Cloudflare", "cfut_ cfat_ cfk_", r"cf(?:ut|at|k)_[A-Za-z0-9_-]{32,}", random=True),
    Format("Supabase", "sbp_", r"sbp_(?:v0_)?[a-f0-9]{32,}"),
    Format("Neon", "napi_", r"napi_[A-Za-z0-9]{32,}"),
    Format("PlanetScale", "pscale_", r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_.=-]{20,}"),
    Format("Tailscale", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9]{6,}(?:-[A-Za-z0-9]{10,})?"),
    Format("Pulumi", "pul-", r"pul-[a-f0-9]{40}"),
    Format("Terraform Cloud", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    Format("HashiCorp Vault", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    Format("HashiCorp Vault", "s.", r"(?<![A-Za-z0-9_./-])s\.[A-Za-z0-9]{24}(?![A-Za-z0-9])", random=True, word=r"s\.[A-Za-z0-9]{24}"),
    Format("ClickHouse Cloud", "4b1d", r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    Format("Databricks", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?|dapi[a-f0-9]{24,}", random=True),
    Format("Databricks", "dose dkea ddbx", r"d(?:ose|kea|dbx)[a-f0-9]{32}"),
    Format("Snowflake", "ver:1", r"ver:1-hint:\d{4,20}-ETMsDg[A-Za-z0-9+/=]{20,}"),
    Format("MongoDB Atlas", "mdb_sa_", r"mdb_sa_(?:sk|id)_[A-Za-z0-9_-]{20,}"),
    Format("OpenShift", "sha256~", r"sha256~[A-Za-z0-9_-]{32,}"),
    Format("Kubernetes bootstrap", ".", r"(?<![\w.-])[a-z0-9]{6}\.[a-z0-9]{16}(?![\w.-])", random=True, word=r"[a-z0-9]{6}\.[a-z0-9]{16}"),
)  # fmt: skip

DEVELOPMENT: tuple[Format, ...] = (
    Format("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{16,}"),
    Format("GitHub", "github_pat_", r"github_pat_[A-Za-z0-9_]{16,}"),
    Format("GitHub", "v1.", r"(?<![A-Za-z0-9_./-])v1\.[a-f0-9]{40}(?![A-Za-z0-9])"),
    Format("GitLab", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-", r"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[A-Za-z0-9_.-]{12,}"),
    Format("GitLab session", "_gitlab_session=", r"_gitlab_session=[A-Za-z0-9%]{20,}"),
    Format("Bitbucket", "atbb", r"ATBB[A-Za-z0-9_=.-]{24,}"),
    Format("Atlassian", "atatt3 atstt3 atctt3", r"AT(?:ATT|STT|CTT)3[A-Za-z0-9_=.-]{20,}"),
    Format("Trello", "atta", r"ATTA[a-f0-9]{60,}"),
    Format("RubyGems", "rubygems_", r"rubygems_[a-f0-9]{32,}"),
    Format("crates.io", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", random=True),
    Format("NuGet", "oy2", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    Format("Clojars", "clojars_", r"CLOJARS_[a-fA-F0-9]{40,}"),
    Format("Docker Hub", "dckr_", r"dckr_[op]at_[A-Za-z0-9_-]{20,}"),
    Format("CircleCI", "ccip", r"CCIP(?:AT|RJ)_[A-Za-z0-9_-]{20,}"),
    Format("SonarQube", "squ_ sqp_ sqa_", r"sq[upa]_[a-f0-9]{40}"),
    Format("Snyk", "snyk_", r"snyk_(?:uat|sat|[a-z]{2,8})\.[A-Za-z0-9_.-]{30,}"),
    Format("Sourcegraph", "sgp_ sgd_", r"sgp_[A-Za-z0-9_]{30,}|sgd_[a-f0-9]{40,}", random=True),
    Format("Prefect", "pnu_ pnb_", r"pn[ub]_[A-Za-z0-9]{30,}"),
    Format("dbt Cloud", "dbtc_ dbtu_ dbts_", r"dbt[cus]_[A-Za-z0-9_=-]{30,}"),
    Format("Postman", "pmak-", r"PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{30,}"),
    Format("RapidAPI", "jsn", r"[a-z0-9]{10}msh[a-z0-9]{10,20}p1[a-z0-9]{4,8}jsn[a-z0-9]{10,14}"),
    Format("Infracost", "ico-", r"ico-[A-Za-z0-9]{32}"),
    Format("Octopus Deploy", "api-", r"API-[A-Z0-9]{26,}", random=True),
    Format("Harness", "pat. sat.", r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    Format("Doppler", "dp.", r"dp\.(?:pt|st|sa|ct|scim|audit|said)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{32,}"),
    Format("1Password", "ops_", r"ops_eyJ[A-Za-z0-9+/=_-]{40,}"),
    Format("1Password", "a3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    Format("Infisical", "st.", r"(?<![\w.-])st\.[a-f0-9]{24}\.[a-f0-9]{32}\.[a-f0-9]{32}|(?<![\w.-])st\.[a-f0-9-]{24,36}\.[A-Za-z0-9]{24,}\.[A-Za-z0-9]{24,}"),
    Format("Duffel", "duffel_", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{30,}"),
    Format("Frame.io", "fio-u-", r"fio-u-[A-Za-z0-9_=-]{40,}"),
    Format("Django", "django-insecure-", r"django-insecure-[^\s\"'<>]{20,}"),
    Format("Laravel", "base64:", r"base64:[A-Za-z0-9+/]{43}=(?!=)"),
    Format("Ngrok", "_", r"[12][A-Za-z0-9]{26}_[A-Za-z0-9]{20,22}(?![A-Za-z0-9_])", random=True, word=r"[12][A-Za-z0-9]{26}_[A-Za-z0-9]{6}"),
    Format("MaxMind", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    Format("LaunchDarkly", "sdk- api- mob-", rf"(?<![\w-])(?:sdk|api|mob)-{_UUID}"),
    Format("Sanity", "sk", r"sk[A-Za-z0-9]{80,200}(?![A-Za-z0-9])", random=True, word=r"sk[A-Za-z0-9]{24}"),
    Format("DevCycle and Statsig", "secret-", r"secret-[A-Za-z0-9]{32,}", random=True),
    Format("PostHog", "phc_ phx_", r"ph[cx]_[A-Za-z0-9]{30,}", random=True),
    Format("Settlemint", "sm_", r"sm_[aps]at_[A-Za-z0-9]{16,}"),
    Format("Intra 42", "s-s4t2", r"s-s4t2(?:ud|af)-[a-f0-9]{40,}"),
    Format("Defined Networking", "dnkey-", r"dnkey-[A-Za-z0-9_=-]{20,40}-[A-Za-z0-9_=-]{40,}"),
    Format("Authress", ".acc", r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}"),
)  # fmt: skip

MODELS: tuple[Format, ...] = (
    Format("OpenAI, Anthropic and others", "sk-", r"(?<![A-Za-z0-9_-])sk-(?:proj|ant|svcacct|service|admin|or|live|test|lf|helicone|litellm|None)-[A-Za-z0-9_-]{8,}"),
    Format("OpenAI and others", "sk-", r"(?<![A-Za-z0-9_-])sk-(?=[A-Za-z_-]{0,40}[0-9]|[A-Za-z0-9]{20})[A-Za-z0-9][A-Za-z0-9_-]{15,}"),
    Format("OpenAI session", "sess-", r"sess-[A-Za-z0-9]{30,}", random=True),
    Format("OpenAI", "t3blbkfj", r"[A-Za-z0-9_-]{20,200}T3BlbkFJ[A-Za-z0-9_-]{20,}"),
    Format("LangSmith", "lsv2_", r"lsv2_[a-z]{2}_[A-Za-z0-9_]{16,}"),
    Format("LangSmith", "ls__", r"ls__[a-f0-9]{32}"),
    Format("Langfuse", "pk-lf-", r"pk-lf-[A-Za-z0-9-]{16,}"),
    Format("xAI", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    Format("Voyage", "pa-", r"pa-[A-Za-z0-9_-]{40,}", random=True),
    Format("Jina", "jina_", r"jina_[a-f0-9]{32}[A-Za-z0-9_-]{0,40}"),
    Format("Tavily", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9-]{20,}"),
    Format("Firecrawl", "fc-", r"fc-[a-f0-9]{32}"),
    Format("Fireworks", "fw_", r"fw_[A-Za-z0-9]{20,}", random=True),
    Format("ElevenLabs", "sk_", r"sk_[a-f0-9]{40,}"),
    Format("Brave Search", "bsa", r"BSA[A-Za-z0-9_-]{27,30}(?![A-Za-z0-9_-])", random=True),
    Format("Chroma", "ck-", r"(?<![A-Za-z0-9_-])ck-[A-Za-z0-9]{40,}", random=True),
    Format("Modal", "ak- as-", r"(?<![A-Za-z0-9_-])a[ks]-[A-Za-z0-9]{22}(?![A-Za-z0-9_-])", random=True),
    Format("KnowledgePulse", "kp_", r"(?<![A-Za-z0-9_./\\-])kp_(?=[A-Za-z]{0,40}[0-9]|[a-f]{16})[A-Za-z0-9]{12,}(?![_./-][A-Za-z])"),
    Format("KnowledgePulse", "kp_", r"(?<![A-Za-z0-9_./\\-])kp_(?:live|test|sk|api|key|secret|prod|dev|raw)_(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{8,}(?!\.[A-Za-z])", random=True),
)  # fmt: skip

BUSINESS: tuple[Format, ...] = (
    Format("Slack", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}"),
    Format("Discord", ".", r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}", word=r"[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{16}"),
    Format("Telegram", ":", r"(?<![\w:.-])[0-9]{6,16}:A[A-Za-z0-9_-]{32,36}(?![A-Za-z0-9_-])", word=r"[0-9]{6}:A[A-Za-z0-9_-]{6}"),
    Format("Twitch", "oauth:", r"oauth:[a-z0-9]{30}(?![A-Za-z0-9])", random=True),
    Format("X", "aaaaaaaaaaaaaaaaaaaa", r"(?<![+/])A{20,}[A-Za-z0-9%]{60,}", random=True),
    Format("Meta", "eaa", r"EAA[A-Za-z0-9]{40,}", random=True),
    Format("Instagram", "igqv igaa", r"IG(?:QV|AA)[A-Za-z0-9_-]{40,}", random=True),
    Format("Meta", "|", r"(?<![\w|])[0-9]{15,16}\|[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])", random=True, word=r"[0-9]{6}\|[A-Za-z0-9_-]{6}"),
    Format("LinkedIn", "wpl_ap", r"WPL_AP[0-9]\.[A-Za-z0-9_.=/+-]{12,}"),
    Format("LinkedIn", "aqu aqv aqw aqx", r"AQ[UVWX][A-Za-z0-9_-]{80,}", random=True),
    Format("Stripe and Paystack", "_live_ _test_ _prod_", r"(?:sk|rk|pk|whsec|ek)_(?:live|test|prod)_[A-Za-z0-9]{8,}"),
    Format("Stripe webhook", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    Format("Square", "sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{16,}"),
    Format("Square", "eaaa", r"EAAA[A-Za-z0-9_-]{22,}", random=True),
    Format("PayPal and Braintree", "access_token$", r"access_token\$(?:production|sandbox|live)\$[a-z0-9]{10,20}\$[a-f0-9]{20,}"),
    Format("PayPal", "a21aa", r"A21AA[A-Za-z0-9_-]{60,}"),
    Format("Adyen", "aqe", r"AQE[a-z][A-Za-z0-9+/=]{20,200}-[A-Za-z0-9+/=]{30,100}-[A-Za-z0-9+/=!-~]{8,30}"),
    Format("Shopify", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_ shpitsa_", r"shp(?:at|ca|pa|ss|ua|tka|itsa)_[a-zA-Z0-9]{20,}"),
    Format("Razorpay", "rzp_", r"rzp_(?:live|test)_[A-Za-z0-9]{12,}"),
    Format("Flutterwave", "flwseck flwpubk", r"FLW(?:SECK|PUBK)(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?"),
    Format("Plaid", "-sandbox- -development- -production-", rf"(?:access|public|link|processor)-(?:sandbox|development|production)-{_UUID}"),
    Format("GoCardless", "live_ sandbox_", r"(?<![A-Za-z0-9_])(?:live|sandbox)_[A-Za-z0-9_-]{32,}", random=True),
    Format("Lob", "live_ test_", r"(?<![A-Za-z0-9_])(?:live|test)_(?:pub_)?[a-f0-9]{31,35}"),
    Format("EasyPost", "ezak eztk", r"EZ[AT]K[A-Za-z0-9]{40,}"),
    Format("Shippo", "shippo_", r"shippo_(?:live|test)_[a-fA-F0-9]{32,}"),
    Format("Twilio", "sk ac", r"(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9])", word=r"(?:SK|AC)[0-9a-f]{32}"),
    Format("SendGrid", "sg.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{10,}"),
    Format("Mailgun", "key-", r"(?<![A-Za-z0-9_])(?:pub)?key-[a-f0-9]{32}"),
    Format("Mailgun", "-", r"(?<![\w-])[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}(?![\w-])", word=r"[a-f0-9]{6}-[a-f0-9]{8}-[a-f0-9]{8}"),
    Format("Mailchimp", "-us", r"[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    Format("Mandrill", "md-", r"md-[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])", random=True),
    Format("Brevo", "xkeysib xsmtpsib", r"x(?:keysib|smtpsib)-[a-f0-9]{40,}-[A-Za-z0-9]{12,}"),
    Format("Resend", "re_", r"(?<![A-Za-z0-9_])re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}|(?<![A-Za-z0-9_])re_[A-Za-z0-9]{28,}", random=True),
    Format("Notion", "secret_", r"secret_[A-Za-z0-9]{40,}", random=True),
    Format("Airtable", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}"),
    Format("Airtable", "key", r"key[A-Za-z0-9]{14}(?![A-Za-z0-9])", random=True),
    Format("Asana", "0/ 1/ 2/", r"(?<![\w/.-])[0-2]/[0-9]{10,20}(?:/[0-9]{10,20})?:[a-f0-9]{32}|(?<![\w/.-])0/[a-f0-9]{32}(?![A-Za-z0-9])", word=r"[0-2]/[0-9]{10}|0/[a-f0-9]{32}"),
    Format("Linear", "lin_", r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{20,}"),
    Format("Figma", "figd_ figo_ figu_ figr_ figm_ figdr_ figur_ figor_", r"fig(?:[dourm]|[duo]r)_[A-Za-z0-9_-]{20,}"),
    Format("ClickUp", "pk_", r"pk_[0-9]{4,12}_[A-Z0-9]{20,}"),
    Format("Typeform", "tfp_", r"tfp_[A-Za-z0-9_.=-]{30,}"),
    Format("Intercom", "dg9r", r"dG9rO[A-Za-z0-9+/]{40,}={0,2}"),
    Format("HubSpot", "pat-", rf"pat-(?:na|eu|ap)[0-9]-{_UUID}"),
    Format("Salesforce", "!", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,}", word=r"00D[A-Za-z0-9]{12,15}!"),
    Format("Okta", "00", r"(?<![\w.-])00[A-Za-z][A-Za-z0-9_-]{39}(?![A-Za-z0-9_-])", random=True, word=r"00[A-Za-z][A-Za-z0-9_-]{12}"),
    Format("Dropbox", "sl.", r"(?<![\w.-])sl\.(?:u\.)?[A-Za-z0-9_-]{60,}"),
    Format("Dropbox", "aaaaaaaaaa", r"[A-Za-z0-9]{11}AAAAAAAAAA[A-Za-z0-9_=-]{40,}"),
    Format("Adobe", "p8e", r"p8e-[A-Za-z0-9_-]{28,}"),
    Format("Grafana", "glsa_ glc_ glsm_", r"gl(?:sa|c|sm)_[A-Za-z0-9+/_=-]{24,}", random=True),
    Format("Grafana", "eyjrijoi", r"eyJrIjoi[A-Za-z0-9+/_-]{30,}={0,2}"),
    Format("New Relic", "nrak- nrii- nriq- nrra- nrsp- nraa- nrbr- nrjs-", r"NR(?:AK|II|IQ|RA|SP|AA|BR|JS)-[A-Za-z0-9_-]{16,}"),
    Format("New Relic licence", "nral", r"[a-z]{0,6}[a-f0-9x]{26,40}(?:NRAL|FFFFNRAL)(?![A-Za-z0-9])"),
    Format("Datadog", "ddpat_ ddsat_ ddapi_ ddapp_", r"dd(?:pat|sat|api|app)_[A-Za-z0-9_-]{20,}", random=True),
    Format("Dynatrace", "dt0", r"dt0[a-z][0-9]{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{40,}"),
    Format("Honeycomb", "hcaik hcalk hcbik hcblk hcxik hcxlk hcaic hcbic hcxic hcalc hcblc hcxlc", r"hc[abx][il][ck]_[A-Za-z0-9]{40,}"),
    Format("Sentry", "sntrys_ sntryu_", r"sntry[us]_[A-Za-z0-9+/=_-]{30,}"),
    Format("Mapbox", ".eyj", r"[psk]{2}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}"),
    Format("Elastic", "essu_", r"essu_[A-Za-z0-9+/=_-]{30,}"),
    Format("age", "age-secret-key-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{30,}"),
    Format("Bitcoin extended key", "prv", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{90,}"),
    Format("ReCAPTCHA", "6l", r"6L[a-zA-Z0-9]{5,6}AAAA[A-Za-z0-9_-]{24,30}", word=r"6L[a-zA-Z0-9]{5,6}AAAA"),
    Format("Freemius and generic", "sk_", r"sk_[A-Za-z0-9]{28,}", random=True),
)  # fmt: skip

# Keys that begin with a prefix of their vendor, by the rest of the key.
PREFIXES = {
    r"[A-Za-z0-9-]{10,}": {"Slack": "xapp-", "Slack workflow": "xwfp-"},
    r"[A-Za-z0-9]{20,}": {"npm": "npm_", "Hugging Face": "hf_ api_org_", "Perplexity": "pplx-", "Groq": "gsk_", "Replicate": "r8_"},
    r"[A-Za-z0-9]{30,}": {"Buildkite": "bkua_", "Notion": "ntn_"},
    r"[A-Za-z0-9]{50,}": {"JFrog": "AKCp cmVmd"},
    r"[A-Za-z0-9_-]{16,}": {"Aiven": "AVNS_", "GitLab runner": "GR1348941", "grace-kp": "gkp_"},
    r"[A-Za-z0-9_-]{20,}": {"Google API": "AIza", "Google OAuth secret": "GOCSPX-", "Supabase": "sb_secret_"},
    r"[A-Za-z0-9_-]{30,}": {"Heroku": "HRKU-", "Fly.io": "fo1_", "PyPI": "pypi-", "Together": "tgp_v1_"},
    r"[A-Za-z0-9_-]{40,}": {"Yandex": "y0_", "NVIDIA": "nvapi-", "Scalingo": "tk-us-", "Contentful": "CFPAT-"},
    r"[A-Za-z0-9_-]{8,}": {"Anthropic": "sk-ant-", "OpenAI": "sk-proj-"},
    r"[A-Za-z0-9_]{30,}": {"Pinecone": "pcsk_", "Weights & Biases": "wandb_v1_"},
    r"[a-z0-9]{40,}": {"ReadMe": "rdme_", "Cerebras": "csk-"},
}  # fmt: skip
FORMATS = CLOUDS + DEVELOPMENT + MODELS + BUSINESS
FORMATS += tuple(
    Format(vendor, prefixes.lower(), f"(?:{'|'.join(map(re.escape, prefixes.split()))}){rest}")
    for rest, vendors in PREFIXES.items()
    for vendor, prefixes in vendors.items()
)

# A letter or a digit before a key makes it part of a word, unless it belongs to an escape: \n, %3D, \u0022, a colour of a terminal.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\u[0-9a-fA-F]{4})|(?<=\[[0-9]m)|(?<=\[[0-9]{2}m))"
_BEFORE = re.compile(r"(?:\(\?<![^)]*\))+")
_OR_ESCAPE = r"(?:\g<0>|(?<=\\\\[nrtbf]))"  # what a format must not follow is not meant for the letter of an escape
_REST = r"[A-Za-z0-9_]*+"


def _is_example(match: re.Match[str]) -> bool:
    return len(set(match[0][-8:].lower())) == 1


def _begins(row: Format) -> bool:
    """Whether every match begins with one of the strings of its row."""
    beginning = re.match(r"(?:\(\?<![^)]*\))*(?:\(\?:)?([A-Za-z0-9_]+)", row.pattern)
    return beginning is not None and any(beginning[1].lower()[:2] == need[:2] for need in row.needs.split())


def _rule(row: Format) -> RedactionRule:
    return RedactionRule(
        "api_key",
        row.vendor,
        f"{_START}(?:{_BEFORE.sub(_OR_ESCAPE, row.pattern)}){_REST}",
        needs=tuple(row.needs.split()),
        begins=_begins(row),
        word=row.word,
        local="[^" not in row.pattern,  # such a class has rare blanks in it
        keeps=(lambda match: _is_example(match) or not looks_random(match[0])) if row.random else _is_example,
    )


VENDOR_RULES: tuple[RedactionRule, ...] = tuple(map(_rule, FORMATS))
