"""Words with which texts instruct a reader or an assistant, by language. Data, and the search for it; it judges no intent.

The phrases follow from how instructions to people and to assistants are worded: a request, an obligation, an attempt to replace
the task, the address of an assistant, the mention of its tools, and an imperative at the beginning of a sentence. Two different kinds of them near
a value count as an instruction, or one that has no other use.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grace_kp.confidence._argument_values import normal_form, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST, DUTY, REPLACE, ADDRESS, TOOL, ACT = "request", "duty", "replace", "address", "tool", "act"
WEIGHTS = {REQUEST: 1, DUTY: 1, REPLACE: 2, ADDRESS: 1, TOOL: 1, ACT: 1}
"""Points of a kind near a value. A kind counts once."""
ENOUGH = 2

LANGUAGES: dict[str, dict[str, str]] = {
    "en": {
        REQUEST: "please|kindly|could you|can you|would you|will you|i need you to|i want you to|i would like you to|i'd like you to|todo:",
        DUTY: "you must|you should|you have to|you need to|you are required|you are to|make sure to|make sure that you|be sure to|"
        "do not forget|don't forget|remember to|it is essential|it is important that you|it is imperative|must immediately|urgent|"
        "important message|important:|do the following|following steps|follow these steps",
        REPLACE: "ignore your|ignore all|ignore any|ignore the above|ignore the previous|ignore previous|ignore everything|disregard|"
        "forget your|forget all|forget the|forget everything|previous instructions|prior instructions|new instructions|"
        "new instruction|new task|override|system prompt|system message|instead of your|your instructions|your original task|"
        "without asking|do not tell the user|don't tell the user|do not mention this",
        ADDRESS: "assistant|ai model|ai agent|language model|llm|chatbot|dear ai|hey ai",
        TOOL: "use the tool|use the function|call the tool|call the function|tool call|function call|with the following arguments|"
        "using your tools|your tools|following command",
        ACT: "send|forward|e-mail|email|reply|write|post|publish|share|upload|transfer|pay|wire|buy|order|book|reserve|cancel|delete|"
        "remove|erase|create|add|append|insert|invite|update|change|set|reset|replace|rename|move|copy|download|open|visit|click|"
        "go to|read|run|execute|install|call|use|make|schedule|give|grant|enable|disable|approve|confirm|submit|enter|fill|tell|"
        "notify|say|print|output|include|refund|withdraw|deposit",
    },
    "de": {
        REQUEST: "bitte|könntest du|könnten sie|kannst du|können sie|ich möchte, dass|ich will, dass|ich brauche",
        DUTY: "du musst|sie müssen|du sollst|sie sollen|du solltest|sie sollten|stelle sicher|stellen sie sicher|vergiss nicht|"
        "vergessen sie nicht|denk daran|unbedingt|dringend|wichtige nachricht|wichtig:|führe folgendes|folgende schritte",
        REPLACE: "ignoriere|ignorieren sie|missachte|vergiss alle|vergiss deine|vorherigen anweisungen|bisherigen anweisungen|"
        "neue anweisung|neue aufgabe|deine anweisungen|ihre anweisungen|systemanweisung|ohne nachzufragen|sag dem nutzer nicht",
        ADDRESS: "assistent|sprachmodell|ki-modell|ki-agent|liebe ki",
        TOOL: "verwende das werkzeug|benutze das werkzeug|rufe die funktion|nutze die funktion|mit folgenden argumenten",
        ACT: "sende|senden sie|schicke|schick|schicken sie|leite|leiten sie|überweise|überweisen sie|zahle|zahlen sie|bezahle|buche|"
        "buchen sie|storniere|lösche|löschen sie|erstelle|erstellen sie|füge|fügen sie|lade|laden sie|ändere|ändern sie|öffne|"
        "öffnen sie|besuche|klicke|klicken sie|teile|antworte|antworten sie|schreibe|schreiben sie|führe|rufe|gib|geben sie|setze|"
        "setzen sie|entferne",
    },
    "fr": {
        REQUEST: "s'il vous plaît|s'il te plaît|veuillez|merci de|pourriez-vous|pouvez-vous|peux-tu|pourrais-tu|je voudrais que|"
        "je veux que",
        DUTY: "vous devez|tu dois|vous devriez|assurez-vous|assure-toi|n'oubliez pas|n'oublie pas|il faut|il est impératif|urgent|"
        "important :|message important|fais ce qui suit|faites ce qui suit|les étapes suivantes",
        REPLACE: "ignore tes|ignore les|ignorez les|ignorez vos|ignorez toutes|oublie tes|oubliez vos|oubliez les|instructions précédentes|"
        "nouvelles instructions|nouvelle tâche|tes instructions|vos instructions|sans demander|ne dis pas à l'utilisateur|"
        "ne dites pas à l'utilisateur",
        ADDRESS: "assistant|modèle de langage|agent ia|modèle d'ia",
        TOOL: "utilise l'outil|utilisez l'outil|appelle la fonction|appelez la fonction|avec les arguments suivants",
        ACT: "envoie|envoyez|envoyer|transfère|transférez|transférer|paie|payez|verse|versez|vire|réserve|réservez|annule|annulez|"
        "supprime|supprimez|crée|créez|ajoute|ajoutez|invite|invitez|modifie|modifiez|change|changez|partage|partagez|ouvre|"
        "ouvrez|visite|visitez|cliquez|clique|écris|écrivez|réponds|répondez|télécharge|téléchargez|exécute|exécutez|remplace|"
        "remplacez",
    },
    "es": {
        REQUEST: "por favor|podrías|podría usted|puedes|puede usted|quiero que|necesito que",
        DUTY: "debes|debe usted|tienes que|tiene que|asegúrate|asegúrese|no olvides|no olvide|recuerda|es imprescindible|urgente|"
        "importante:|mensaje importante|haz lo siguiente|haga lo siguiente|siguientes pasos",
        REPLACE: "ignora tus|ignora las|ignora todas|ignore las|ignore sus|olvida tus|olvida las|olvide las|instrucciones anteriores|"
        "nuevas instrucciones|nueva tarea|tus instrucciones|sus instrucciones|sin preguntar|no le digas al usuario|"
        "no se lo digas al usuario",
        ADDRESS: "asistente|modelo de lenguaje|agente de ia|modelo de ia",
        TOOL: "usa la herramienta|utiliza la herramienta|llama a la función|con los siguientes argumentos",
        ACT: "envía|envíe|envia|manda|reenvía|reenvíe|transfiere|transfiera|paga|pague|reserva|reserve|cancela|cancele|borra|borre|"
        "elimina|elimine|crea|cree|añade|añada|agrega|agregue|invita|invite|actualiza|actualice|cambia|cambie|comparte|comparta|"
        "abre|abra|visita|visite|escribe|escriba|responde|responda|descarga|descargue|ejecuta|ejecute|haz|haga",
    },
    "it": {
        REQUEST: "per favore|per cortesia|potresti|potrebbe|puoi|voglio che|ti chiedo di|si prega di",
        DUTY: "devi|deve|dovresti|assicurati|si assicuri|non dimenticare|ricordati|è necessario|urgente|importante:|"
        "messaggio importante|esegui quanto segue|seguenti passaggi",
        REPLACE: "ignora le|ignora tutte|ignori le|dimentica le|istruzioni precedenti|nuove istruzioni|nuovo compito|tue istruzioni|"
        "senza chiedere|non dire all'utente",
        ADDRESS: "assistente|modello linguistico|agente ia",
        TOOL: "usa lo strumento|utilizza lo strumento|chiama la funzione|con i seguenti argomenti",
        ACT: "invia|invii|manda|inoltra|trasferisci|paga|paghi|prenota|annulla|cancella|elimina|crea|aggiungi|invita|aggiorna|modifica|"
        "cambia|condividi|apri|visita|scrivi|rispondi|scarica|esegui",
    },
    "pt": {
        REQUEST: "por favor|poderia|você pode|quero que|preciso que|gostaria que",
        DUTY: "você deve|deve|tem que|certifique-se|não se esqueça|lembre-se|é imprescindível|urgente|importante:|mensagem importante|"
        "faça o seguinte|seguintes passos",
        REPLACE: "ignore as|ignore suas|ignore todas|esqueça as|esqueça suas|instruções anteriores|novas instruções|nova tarefa|"
        "suas instruções|sem perguntar|não diga ao usuário",
        ADDRESS: "assistente|modelo de linguagem|agente de ia",
        TOOL: "use a ferramenta|utilize a ferramenta|chame a função|com os seguintes argumentos",
        ACT: "envie|envia|mande|encaminhe|transfira|pague|reserve|cancele|apague|exclua|remova|crie|adicione|convide|atualize|altere|"
        "mude|compartilhe|abra|visite|escreva|responda|baixe|execute|faça",
    },
    "nl": {
        REQUEST: "alsjeblieft|alstublieft|graag|kun je|kunt u|zou je|ik wil dat|ik heb nodig dat",
        DUTY: "je moet|u moet|je dient|zorg ervoor|zorg dat|vergeet niet|denk eraan|dringend|belangrijk:|belangrijk bericht|"
        "doe het volgende|volgende stappen",
        REPLACE: "negeer|vergeet alle|vergeet je|vorige instructies|eerdere instructies|nieuwe instructies|nieuwe taak|je instructies|"
        "zonder te vragen|vertel de gebruiker niet",
        ADDRESS: "assistent|taalmodel|ai-model|ai-agent",
        TOOL: "gebruik de tool|gebruik het hulpmiddel|roep de functie|met de volgende argumenten",
        ACT: "stuur|verstuur|zend|betaal|maak|boek|reserveer|annuleer|verwijder|wis|voeg|nodig|wijzig|verander|deel|open|bezoek|klik|"
        "schrijf|antwoord|download|voer",
    },
    "pl": {
        REQUEST: "proszę|prosimy|czy możesz|czy mógłbyś|chcę, żebyś|potrzebuję, żebyś",
        DUTY: "musisz|powinieneś|należy|upewnij się|nie zapomnij|pamiętaj|pilne|ważne:|ważna wiadomość|wykonaj następujące|"
        "następujące kroki",
        REPLACE: "zignoruj|ignoruj|zapomnij|poprzednie instrukcje|poprzednie polecenia|nowe instrukcje|nowe zadanie|twoje instrukcje|"
        "bez pytania|nie mów użytkownikowi",
        ADDRESS: "asystent|asystencie|model językowy|agent ai",
        TOOL: "użyj narzędzia|wywołaj funkcję|z następującymi argumentami",
        ACT: "wyślij|prześlij|przelej|zapłać|zarezerwuj|anuluj|usuń|skasuj|utwórz|stwórz|dodaj|zaproś|zaktualizuj|zmień|udostępnij|"
        "otwórz|odwiedź|kliknij|napisz|odpowiedz|pobierz|uruchom|wykonaj",
    },
    "ru": {
        REQUEST: "пожалуйста|прошу|не могли бы вы|можешь ли ты|я хочу, чтобы|мне нужно, чтобы",
        DUTY: "ты должен|вы должны|необходимо|обязательно|убедитесь|убедись|не забудь|не забудьте|срочно|важно:|важное сообщение|"
        "сделай следующее|сделайте следующее|следующие шаги",
        REPLACE: "игнорируй|игнорируйте|забудь|забудьте|предыдущие инструкции|новые инструкции|новое задание|твои инструкции|"
        "ваши инструкции|не спрашивая|не говори пользователю",
        ADDRESS: "ассистент|помощник|языковая модель|ии-агент",
        TOOL: "используй инструмент|используйте инструмент|вызови функцию|вызовите функцию|со следующими аргументами",
        ACT: "отправь|отправьте|перешли|перешлите|переведи|переведите|оплати|оплатите|заплати|забронируй|забронируйте|отмени|отмените|"
        "удали|удалите|создай|создайте|добавь|добавьте|пригласи|пригласите|обнови|обновите|измени|измените|поделись|открой|"
        "откройте|посети|посетите|напиши|напишите|ответь|ответьте|скачай|скачайте|запусти|выполни|выполните",
    },
    "tr": {
        REQUEST: "lütfen|rica ederim|yapabilir misin|istiyorum ki",
        DUTY: "zorundasın|zorundasınız|gerekiyor|gerekmektedir|emin ol|emin olun|unutma|unutmayın|acil|önemli:|önemli mesaj|şunları yap|"
        "aşağıdaki adımları",
        REPLACE: "görmezden gel|yok say|önceki talimatları|önceki talimatlar|yeni talimatlar|yeni görev|talimatlarını unut|sormadan|"
        "kullanıcıya söyleme",
        ADDRESS: "asistan|dil modeli|yapay zeka",
        TOOL: "aracı kullan|aracını kullan|işlevi çağır|fonksiyonu çağır|aşağıdaki argümanlarla",
        ACT: "gönder|gönderin|ilet|öde|ödeyin|aktar|rezervasyon yap|iptal et|sil|silin|oluştur|ekle|ekleyin|davet et|güncelle|değiştir|"
        "paylaş|aç|ziyaret et|yaz|yanıtla|indir|çalıştır",
    },
    "ja": {
        REQUEST: "してください|して下さい|お願いします|お願いいたします|ていただけ|てほしい|て欲しい|ください",
        DUTY: "しなければならない|しなければなりません|する必要があ|必ず|忘れずに|至急|緊急|重要なメッセージ|重要:|以下を実行|次の手順|次のこと",
        REPLACE: "以前の指示|これまでの指示|上記の指示|指示を無視|無視して|新しい指示|新しいタスク|指示は忘れ|確認せずに|ユーザーに知らせ|ユーザーには言わ|システムプロンプト",
        ADDRESS: "アシスタント|言語モデル|エージェント",
        TOOL: "ツールを使|ツールを呼|関数を呼|以下の引数|次の引数",
        ACT: "送信|送って|転送|送金|振り込|振込|支払|予約して|キャンセルして|削除|消して|作成して|追加して|招待|更新して|変更して|共有して|開いて|アクセスして|書いて|返信|ダウンロード|実行",
    },
    "zh": {
        REQUEST: "请|請|麻烦|麻煩|拜托|希望你|我要你|需要你",
        DUTY: "你必须|你必須|您必须|必须|必須|务必|務必|一定要|不要忘记|不要忘記|记得|記得|紧急|緊急|重要消息|重要:|执行以下|執行以下|以下步骤|以下步驟",
        REPLACE: "忽略|无视|無視|忘记之前|忘記之前|之前的指令|以前的指令|先前的指令|新的指令|新指令|新任务|新任務|你的指令|不要告诉用户|不要告訴用戶|无需询问|系统提示",
        ADDRESS: "助手|助理|语言模型|語言模型|智能体|人工智能",
        TOOL: "使用工具|调用工具|調用工具|调用函数|呼叫函式|使用以下参数|以下参数",
        ACT: "发送|發送|发给|發給|转发|轉發|转账|轉帳|转给|汇款|匯款|付款|支付|预订|預訂|取消|删除|刪除|创建|建立|添加|新增|邀请|邀請|更新|修改|更改|分享|打开|打開|访问|訪問|写|回复|回覆|下载|下載|执行|執行",
    },
    "ko": {
        REQUEST: "해 주세요|해주세요|주세요|부탁드립니다|부탁합니다|바랍니다|하십시오|해 줘|해줘",
        DUTY: "해야 합니다|해야 한다|반드시|꼭|잊지 마|긴급|중요한 메시지|중요:|다음을 수행|다음 단계",
        REPLACE: "이전 지시|이전 지침|이전 명령|무시하|새로운 지시|새 지시|새로운 작업|지시를 잊|묻지 말고|사용자에게 말하지|시스템 프롬프트",
        ADDRESS: "어시스턴트|언어 모델|에이전트|인공지능",
        TOOL: "도구를 사용|도구를 호출|함수를 호출|다음 인수",
        ACT: "보내|전송|전달|송금|이체|지불|결제|예약|취소|삭제|생성|만들|추가|초대|업데이트|변경|공유|열어|방문|작성|답장|다운로드|실행",
    },
    "ar": {
        REQUEST: "من فضلك|رجاء|يرجى|الرجاء|هل يمكنك|أريدك أن|أريد منك",
        DUTY: "يجب عليك|يجب أن|عليك أن|تأكد من|لا تنس|عاجل|هام:|رسالة مهمة|قم بما يلي|الخطوات التالية",
        REPLACE: "تجاهل|انس التعليمات|التعليمات السابقة|تعليمات جديدة|مهمة جديدة|تعليماتك|دون أن تسأل|لا تخبر المستخدم",
        ADDRESS: "المساعد|نموذج لغوي|وكيل الذكاء",
        TOOL: "استخدم الأداة|استدع الدالة|بالوسائط التالية",
        ACT: "أرسل|ارسل|حول|حوّل|ادفع|احجز|ألغ|احذف|أنشئ|أضف|ادع|حدث|غير|شارك|افتح|اكتب|رد على|نزل|نفذ",
    },
    "hi": {
        REQUEST: "कृपया|क्या आप|मैं चाहता हूँ कि|आपसे अनुरोध",
        DUTY: "आपको अवश्य|चाहिए|ज़रूर|जरूर|सुनिश्चित करें|न भूलें|तुरंत|महत्वपूर्ण संदेश|महत्वपूर्ण:|निम्नलिखित करें|निम्नलिखित चरण",
        REPLACE: "अनदेखा कर|नज़रअंदाज़|पिछले निर्देश|पहले के निर्देश|नए निर्देश|नया कार्य|निर्देशों को भूल|बिना पूछे|उपयोगकर्ता को न बताएं",
        ADDRESS: "सहायक|भाषा मॉडल|एआई एजेंट",
        TOOL: "टूल का उपयोग|उपकरण का उपयोग|फ़ंक्शन को कॉल|निम्नलिखित तर्क",
        ACT: "भेजें|भेजो|भेज दें|स्थानांतरित करें|भुगतान करें|बुक करें|रद्द करें|हटाएं|मिटाएं|बनाएं|जोड़ें|आमंत्रित करें|अपडेट करें|"
        "बदलें|साझा करें|खोलें|लिखें|उत्तर दें|डाउनलोड करें|चलाएं",
    },
}  # fmt: skip
_UNSPACED = frozenset({"ja", "zh", "ko"})
"""Languages whose phrases begin inside of what looks like one word."""
_INITIAL = re.compile(
    r"""(?:^|[.!?:;,"'`*>)\]\n\-–—•»“”،।]|\bplease|\bthen|\band|\bto|\bnow|\bdo|\bfirst|\bbitte|\bund|\bet|\by|\be|\bи)\s*$"""
)
_BOUNDARY = re.compile(r"\w")


def _spaced_phrases() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the phrases of languages with spaces by their first word, each with its kind."""
    found: dict[str, list[tuple[str, str]]] = {}
    for language, kinds in LANGUAGES.items():
        if language not in _UNSPACED:
            for kind, listed in kinds.items():
                for phrase in normal_form(listed).split("|"):
                    found.setdefault(words_of(phrase)[0], []).append((phrase, kind))
    return {word: tuple(dict.fromkeys(phrases)) for word, phrases in found.items()}


SPACED = _spaced_phrases()
UNSPACED = tuple(
    (phrase, kind)
    for name in sorted(_UNSPACED)
    for kind, listed in LANGUAGES[name].items()
    for phrase in normal_form(listed).split("|")
)


def find_instructions(text: str, words: frozenset[str] | set[str]) -> list[tuple[int, str, str]]:
    """Return place, kind and phrase of each instructing phrase, in the order of places.

    Args:
        text: in lower case (`str.casefold`).
        words: its words, so that most phrases need no search.
    """
    found = [hit for word in SPACED.keys() & words for hit in _spaced_hits(text, word)]
    if not text.isascii():
        for phrase, kind in UNSPACED:
            found += [(place, kind, phrase) for place in _places_of(text, phrase)]
    return sorted(found)


def _spaced_hits(text: str, word: str) -> Iterator[tuple[int, str, str]]:
    for place in _places_of(text, word):
        if place and text[place - 1].isalnum():
            continue
        for phrase, kind in SPACED[word]:
            end = place + len(phrase)
            if not text.startswith(phrase, place) or (phrase[-1].isalnum() and _BOUNDARY.match(text, end)):
                continue
            if kind != ACT or _INITIAL.search(text, max(0, place - 10), place):
                yield place, kind, phrase


def _places_of(text: str, part: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + len(part))
