"""Words with which texts instruct a reader or an assistant, by language. Data, and the search for it; it judges no intent.

The phrases follow from how instructions to people and to assistants are worded: a request, an obligation or haste, an attempt to replace the task or to
hide it, the address of an assistant that acts for a user, and an imperative. Two different kinds of them near a value count as an instruction, or one
that has no other use. A star stands for the rest of a word. Phrases in which people are informed, such as "ignore this e-mail", are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from grace_kp.confidence._argument_values import normal_form, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Phrase = tuple[str, str, bool, bool, bool]
    """A phrase, its kind, whether it may begin and end inside of a word, and whether it counts only where a clause begins."""

REQUEST, DUTY, REPLACE, ADDRESS, ACT = "request", "duty", "replace", "address", "act"
WEIGHTS = {REQUEST: 1, DUTY: 1, REPLACE: 2, ADDRESS: 1, ACT: 1}
"""Points of a kind near a value. A kind counts once."""
ENOUGH = 2

LANGUAGES: dict[str, dict[str, str]] = {
    "en": {
        REQUEST: "please|kindly|could you|can you|would you|if you could|be so kind|i need you to|i want you to|urgent|asked you to|wants you to",
        DUTY: "you must|you should|you have to|must immediately|you need to|you are to|make sure to|do not forget|don't forget|remember to|"
        "following steps|new task|before you answer|before answering|before you continue|before you summari*|important message|important:|todo:|"
        "to finish the task|you are authori*|you have permission|your task|to complete th*|right away|without further|go ahead and",
        REPLACE: "ignore your|ignore all|ignore any|ignore the above|ignore the previous|ignore everything|disregard all|disregard any|"
        "disregard your|disregard previous|forget your|forget all|previous instructions|new instruction*|override your|system override|"
        "system prompt|instead of your|your instructions are|your original task|without asking|do not tell the user|don't tell the user|"
        "do not mention it|keep quiet about",
        ADDRESS: "assistant|ai model*|ai agent*|language model*|llm|llms|chatbot|dear ai|hey ai|<system>*|the user's|tell the user|ask the user|"
        "in your reply|in your answer|in your response|use the tool|use the function|call the tool|call the function|tool call|function call|"
        "with the following arguments|using your tools|your tools|following command|of the user|for the user|the user wants|the user asked|"
        "when you process|when processing this|reading this|ai:|agents:|when you answer",
        ACT: "send|forward|e-mail the|e-mail this|email the|email this|email it|email them|email all|reply|write|post|publish|share|upload|"
        "transfer|pay|buy|order|book|reserve|cancel|delete|remove|create|add|invite|update|change|set|reset|move|copy|download|open|visit|click|"
        "go to|read|run|execute|call|use|make|schedule|give|approve|confirm|submit|enter|fill|tell|notify|include|replace|insert|put|proceed",
    },
    "de": {
        REQUEST: "bitte|könntest du|könnten sie|kannst du|können sie|würden sie|so freundlich|freundlich, wenn|ich möchte, dass|dringend",
        DUTY: "du musst|sie müssen|musst du|müssen sie|du sollst|sie sollen|du solltest|sie sollten|stelle sicher|stellen sie sicher|"
        "vergiss nicht|vergessen sie nicht|denk daran|unbedingt|führe folgendes|folgende schritte|neue aufgabe|bevor du antwortest|"
        "bevor du fortfährst|bevor sie fortfahren|bevor du dieses|bevor du diese|bevor du dem|wichtige nachricht|wichtig:|um die aufgabe|"
        "du bist berechtigt|bist du berechtigt|du darfst|deine aufgabe|sofort|umgehend|ohne weitere prüfung|ohne prüfung",
        REPLACE: "ignoriere alle*|ignoriere die|ignoriere deine|ignorieren sie alle*|ignorieren sie die|missachte|vergiss alle*|vergiss deine|"
        "vergessen sie alle|vorherigen anweisungen|bisherigen anweisungen|neue anweisung*|deine anweisungen|systemanweisung*|ohne nachzufragen|"
        "ohne rückfrage*|ohne weitere rückfrage*|ohne zu fragen|sag dem nutzer nicht*|erwähne das|erwähne dies|verrate nichts",
        ADDRESS: "assistent*|sprachmodell*|ki-modell*|ki-agent*|ki-assistent*|liebe ki|des nutzers|dem nutzer|vom nutzer|des benutzers|"
        "dem benutzer|vom benutzer|in deiner antwort|rufe die funktion|wenn du dies*|beim verarbeiten|wer dies liest|ki:|wenn du antwort*",
        ACT: "sende|senden sie|schicke|schick|schicken sie|leite|leiten sie|überweise|überweisen sie|zahle|zahlen sie|bezahle|bezahlen sie|buche|"
        "buchen sie|bestelle|bestellen sie|storniere|lösche|löschen sie|erstelle|erstellen sie|füge|fügen sie|lade|laden sie|ändere|ändern sie|"
        "öffne|öffnen sie|besuche|klicke|klicken sie|teile|antworte|antworten sie|schreibe|schreiben sie|führe|rufe|gib|geben sie|setze|"
        "setzen sie|verwende|verwenden sie|nutze|nutzen sie|bestätige|bestätigen sie|ersetze|ersetzen sie|poste|veröffentliche|setz",
    },
    "fr": {
        REQUEST: "s'il vous plaît|s'il te plaît|veuillez|merci de|pourriez-vous|pouvez-vous|peux-tu|pourrais-tu|auriez-vous|aurais-tu|"
        "seriez-vous|serais-tu|nous vous prions|je vous prie|je voudrais que|je veux que|urgent",
        DUTY: "vous devez|tu dois|tu devrais|assurez-vous|assure-toi|n'oubliez pas|n'oublie pas|il faut|il est impératif|fais ce qui suit|"
        "faites ce qui suit|nouvelle tâche|avant de répondre|avant de continuer|avant de résumer|important :|pour terminer la tâche|"
        "pour accomplir|tu es autorisé*|vous êtes autorisé*|ta tâche|immédiatement|tout de suite|sans vérifi*|sans autre vérif*",
        REPLACE: "ignore tes|ignore les|ignore tout*|ignorez les|ignorez tout*|oublie tout*|oubliez vos|oubliez les|oubliez tout*|"
        "instructions précédentes|nouvelles instructions|tes instructions|sans demander|sans redemander|sans lui redemander|n'en parle pas|"
        "n'en parlez pas|ne dis pas à l'utilisateur|ne dites pas à l'utilisateur|n'en dis rien|garde le silence",
        ADDRESS: "assistant|modèle de langage|modèles de langage|agent ia|assistant ia|de l'utilisateur|à l'utilisateur|par l'utilisateur|"
        "dans ta réponse|dans votre réponse|appelle la fonction|quand tu|lorsque vous traitez|si tu es une ia|ia :",
        ACT: "envoie|envoyez|envoyer|transfère|transférez|transférer|paie|payez|verse|versez|effectue|effectuez|réserve|réservez|commandez|"
        "annule|annulez|supprime|supprimez|crée|créez|ajoute|ajoutez|invite|invitez|modifie|modifiez|changez|partage|partagez|ouvre|ouvrez|"
        "visite|visitez|écris|écrivez|réponds|répondez|télécharge|téléchargez|exécute|exécutez|remplace|remplacez|utilise|utilisez|donne|donnez|"
        "confirmez|saisis|saisissez|publie|publiez|mets|mettez|remets",
    },
    "es": {
        REQUEST: "por favor|podrías|podría usted|puedes|sería tan amable|tenga la amabilidad|le rogamos|quiero que|necesito que|urgente",
        DUTY: "debes|debe usted|deberías|tienes que|tiene que|asegúrate|asegúrese|no olvides|no olvide|recuerda|es imprescindible|"
        "haz lo siguiente|haga lo siguiente|siguientes pasos|nueva tarea|antes de responder|antes de continuar|antes de resumir|importante:|"
        "para terminar la tarea|para completar la tarea|estás autorizad*|está autorizado a|tu tarea|de inmediato|enseguida|sin más",
        REPLACE: "ignora tus|ignora las|ignora tod*|ignore las|ignore sus|ignore tod*|olvida tus|olvida las|olvida tod*|olvide las|olvide tod*|"
        "instrucciones anteriores|nuevas instrucciones|tus instrucciones|sin preguntar*|sin volver a preguntar*|no lo menciones|no lo mencione|"
        "no menciones|no le digas al usuario|no le diga al usuario|no se lo digas al usuario|guarda silencio|no digas nada",
        ADDRESS: "asistente|modelo de lenguaje|modelos de lenguaje|agente de ia|asistente de ia|modelo de ia|del usuario|al usuario|"
        "por el usuario|en tu respuesta|llama a la función|para el usuario|cuando proceses|al procesar|ia:|cuando respondas",
        ACT: "envía|envíe|envia|envíale|manda|mande|reenvía|reenvíe|transfiere|transfiera|paga|pague|reserve|resérvalo|resérvelo|cancela|cancele|"
        "borra|borre|elimina|elimine|crea|cree|añade|añada|invita|invite|cambia|cambie|comparte|comparta|abre|abra|visita|visite|escribe|escriba|"
        "responde|responda|descarga|descargue|ejecuta|ejecute|haz|haga|usa|use|úsalo|úselo|utiliza|utilice|introduce|introduzca|pide|pida|compre|"
        "sustituye|sustituya|publica|publique|reemplaza|pon",
    },
    "it": {
        REQUEST: "per favore|potresti|potrebbe inviare|potrebbe gentilmente|puoi|sarebbe così|la preghiamo|ti chiedo di|si prega di|urgente",
        DUTY: "devi|lei deve|dovresti|assicurati|si assicuri|non dimenticare|ricordati|è necessario|bisogna|esegui quanto segue|nuovo compito|"
        "prima di rispondere|prima di proseguire|prima di continuare|prima di riassumere|importante:|per completare il compito|"
        "per completare l'attività|sei autorizzat*|il tuo compito|hai il permesso|subito|immediatamente|senza altri|senza verific*",
        REPLACE: "ignora le|ignora tutt*|ignori le|ignori tutt*|dimentica le|dimentica tutt*|istruzioni precedenti|nuove istruzioni|"
        "tue istruzioni|senza chiedere*|non dire all'utente|non dirlo all'utente|non parlarne|non menzionar*|non dire nulla",
        ADDRESS: "assistente|modello linguistico|modelli linguistici|agente ia|assistente ia|dell'utente|all'utente|dall'utente|"
        "nella tua risposta|chiama la funzione|per l'utente|quando elabori|ia:|quando rispondi",
        ACT: "invia|invii|manda|mandi|inoltra|inoltri|trasferisci|trasferisca|paga|paghi|versa|prenota|prenotalo|prenotala|cancella|aggiungi|"
        "invita|aggiorna|cambia|condividi|apri|scrivi|rispondi|usa|usalo|utilizza|usatelo|inserisci|sostituisci|sostituisca|pubblica|metti",
    },
    "pt": {
        REQUEST: "por favor|poderia|você pode|se pudesse|faça a gentileza|solicitamos que|pedimos que|quero que|preciso que|gostaria que|urgente",
        DUTY: "você deve|deves|tens de|tem que|certifique-se|não se esqueça|lembre-se|é preciso|é imprescindível|faça o seguinte|"
        "seguintes passos|nova tarefa|antes de responder|antes de continuar|antes de resumir|importante:|mensagem importante|"
        "para concluir a tarefa|para completar a tarefa|está autorizado a|sua tarefa|você precisa|imediatamente|sem mais|sem verificar",
        REPLACE: "ignore as|ignore suas|ignore tod*|ignora as|ignora tod*|esqueça as|esqueça suas|esqueça tud*|instruções anteriores|"
        "novas instruções|tuas instruções|sem perguntar|sem voltar a perguntar|não diga ao usuário|não digas ao utilizador|não mencione*|"
        "não diga nada",
        ADDRESS: "assistente|modelo de linguagem|modelos de linguagem|do usuário|ao usuário|pelo usuário|do utilizador|ao utilizador|"
        "na sua resposta|na tua resposta|chame a função|quando você processar|ao processar|ia:|ao responder",
        ACT: "envie|envia|mande|manda|encaminhe|encaminha|transfira|transfere|pague|paga|reserve|cancele|apague|remova|remove|convide|convida|"
        "compartilhe|abra|escreva|escreve|responda|execute|faça|use|usa|utilize|digite|insira|compre|substitua|publique|adicione|coloque",
    },
    "nl": {
        REQUEST: "alsjeblieft|alstublieft|graag|gelieve|kun je|kun jij|kunt u|zou je|zou u|wil je|wilt u|ik wil dat|ik heb nodig dat|dringend",
        DUTY: "je moet|u moet|moet u|je dient|u dient|vergeet niet|doe het volgende|nieuwe taak|voordat je antwoordt|voordat je verdergaat|"
        "voordat je de gebruiker|voordat je dit|voordat je deze|belangrijk:|om de taak|je bent bevoegd|mag je|je taak|onmiddellijk|meteen|"
        "zonder verdere",
        REPLACE: "negeer alle*|negeer je|negeer de|negeer uw|negeer eerdere|negeer vorige|vergeet alle*|vergeet je|vorige instructies|"
        "eerdere instructies|nieuwe instructies|je instructies|zonder te vragen|zonder het te vragen|zonder opnieuw te vragen|"
        "zonder het nog eens te vragen|vertel de gebruiker niet*|vermeld dat niet|vermeld dit niet|noem dit niet|zwijg erover",
        ADDRESS: "assistent|taalmodel*|ai-model*|ai-agent*|ai-assistent*|van de gebruiker|aan de gebruiker|door de gebruiker|in je antwoord|"
        "in uw antwoord|roep de functie|voor de gebruiker|wanneer je dit|wanneer je deze|als je dit|als je deze|bij het antwoorden",
        ACT: "stuur|verstuur|betaal|maak|boek|reserveer|bestel|verwijder|voeg|wijzig|schrijf|voer|gebruik|vul|geef|vervang|plaats|zet|nodig",
    },
    "pl": {
        REQUEST: "proszę|prosimy|czy możesz|czy mógłbyś|czy mogłabyś|byłbyś tak|byłabyś tak|chcę, żebyś|potrzebuję, żebyś|pilne",
        DUTY: "musisz|powinieneś|należy|upewnij się|nie zapomnij|pamiętaj|nowe zadanie|zanim odpowiesz|zanim przejdziesz|ważne:|ważna wiadomość|"
        "aby zakończyć zadanie|aby wykonać zadanie|masz prawo|twoje zadanie|twoim zadaniem|natychmiast|od razu|bez dalszej",
        REPLACE: "zignoruj wszystkie|zignoruj poprzednie|ignoruj wszystkie|ignoruj poprzednie|zapomnij o poprzednich|poprzednie instrukcje|"
        "poprzednich instrukcji|nowe instrukcje|bez pytania|bez ponownego pytania|nie mów użytkownikowi|nie wspominaj*|nie mów o tym",
        ADDRESS: "asystent|asystencie|asystenta|asystentowi|model językowy|modele językowe|modeli językowych|agent ai|asystent ai|użytkownika|"
        "użytkownikowi|w swojej odpowiedzi|wywołaj funkcję|dla użytkownika|gdy przetwarzasz|kiedy przetwarzasz|przetwarzając|odpowiadając",
        ACT: "wyślij|prześlij|przekaż|przelej|zapłać|wpłać|zarezerwuj|zamów|anuluj|usuń|utwórz|stwórz|dodaj|zaproś|zaktualizuj|zmień|udostępnij|"
        "otwórz|kliknij|napisz|odpowiedz|pobierz|uruchom|wykonaj|użyj|wpisz|potwierdź|zastąp|opublikuj|umieść|wstaw",
    },
    "ru": {
        REQUEST: "пожалуйста|прошу|просим|не могли бы вы|не мог бы ты|можешь ли ты|будьте добры|будьте любезны|я хочу, чтобы|срочно",
        DUTY: "ты должен|вы должны|тебе нужно|вам нужно|необходимо|обязательно|убедитесь|убедись|не забудь|не забудьте|сделай следующее|"
        "сделайте следующее|новая задача|прежде чем ответить|прежде чем отвечать|прежде чем продолж*|прежде чем пересказ*|важно:|"
        "важное сообщение|чтобы завершить задачу|чтобы выполнить задачу|имеешь право|тебе разрешено|твоя задача|немедленно|без проверк*",
        REPLACE: "игнорируй*|забудь все|забудьте все|забудь свои|предыдущие инструкции|новые инструкции|твои инструкции|не спрашивая|не следуй|"
        "без лишних вопросов|не говори пользователю|не упоминай*|молчи об|никому не говори",
        ADDRESS: "ассистент*|помощник|помощнику|языковая модель|языковой модели|языковые модели|языковых моделей|ии-агент*|ии-ассистент*|"
        "пользователя|пользователю|пользователем|в своём ответе|вызови функцию|для пользователя|когда будешь|при обработке|ии:|отвечая",
        ACT: "отправь*|перешли|перешлите|переведи|переведите|перечисли|перечислите|оплати|оплатите|заплати|забронируй*|закажи|закажите|отмени|"
        "отмените|удали|удалите|создай*|добавь*|пригласи|пригласите|обнови|обновите|измени|измените|поделись|открой*|напиши|напишите|ответь*|"
        "запусти|выполни|выполните|используй*|введи|введите|подтверди|подтвердите|замени|замените|опубликуй*|вставь*|поставь*",
    },
    "tr": {
        REQUEST: "lütfen|rica ederi*|mısın*|misin*|musun*|müsün*|istiyorum ki|acil|hemen|derhal",
        DUTY: "zorundasın*|*malısın*|*melisin*|gerekiyor|emin ol|unutma|unutmayın|şunları yap|aşağıdaki adımları|yeni görev|yanıt vermeden önce|"
        "yanıtlamadan önce|devam etmeden önce|özetlemeden önce|önemli:|önemli mesaj|görevi tamamlamak|yetkin var|görevin",
        REPLACE: "yok say|önceki talimat*|önceki tüm talimat*|*ları unut|yoksay|sormadan|kullanıcıya söyleme*|bahsetme|kimseye söyleme",
        ADDRESS: "asistan*|yapay zeka|yapay zekâ|kullanıcının|kullanıcıya|yanıtında|fonksiyonu çağır|dil model*|kullanıcı adına|işlerken",
        ACT: "gönder|gönderin|ilet|yolla|öde|ödeyin|aktar|aktarın|havale et|havale edin|yatır|yatırın|rezervasyon yap|rezervasyonu yap|"
        "sipariş et|sipariş ver|iptal et|sil|silin|oluştur|ekle|ekleyin|davet et|güncelle|ziyaret et|kullan|kullanın|değiştir|paylaş|paylaşın",
    },
    "ja": {
        REQUEST: "ください|下さい|お願いします|お願いいたします|ていただけ|てほしい|て欲しい|しなさい|せよ。|至急|緊急|今すぐ|すぐに|直ちに|確認なしで",
        DUTY: "なければならない|なければなりません|なければ、|する必要があ|すること。|必ず|忘れずに|以下を実行|新しいタスク|回答する前に|返信する前に|続ける前に|要約する前に|重要なメッセージ|重要:|タスクを完了するに|権限があ|あなたのタスク",
        REPLACE: "以前の指示|これまでの指示|指示を無視|指示をすべて無視|指示を全て無視|命令を無視|命令を忘れ|指示は無視|指示はすべて無視|新しい指示|確認せずに|ユーザーに知らせず|ユーザーに知らせない|ユーザーには言わ|触れないで|言及しないで|黙って",
        ADDRESS: "アシスタントへ|アシスタントは|アシスタント様|aiアシスタント|言語モデル|aiエージェント|ユーザーの|ユーザーに|ユーザーが指定|返答では|回答では|ツールを使|ツールを呼|関数を呼|以下の引数|次の引数|処理するとき|処理する際|ユーザーから",
        ACT: "送信し|送信する|送って|転送し|送金|振り込ん|振り込み|支払って|支払わ|予約して|注文し|キャンセルして|削除して|消して|招待|共有して|開いて|アクセスして|書いて|返信し|実行して|投稿し|置き換え|追加し",
    },
    "zh": {
        REQUEST: "请您|请你|请将|请把|请向|请在|请于|请先|请立即|请务必|请使用|请发|请转|请帮|,请|。请|:请|請您|請你|請將|請把|請向|請在|請於|請先|請立即|請使用|請發|請轉|,請|。請|:請|麻烦|麻煩|拜托|希望你|我要你|需要你|紧急|緊急",
        DUTY: "你必须|你必須|您必须|您必須|必须立即|必須立即|你需要|您需要|务必|務必|一定要|不要忘记|不要忘記|执行以下|以下步骤|新任务|新任務|回答用户之前|回复之前|继续之前|繼續之前|在总结|重要消息|重要:|完成任务|你的任务|马上|你有权",
        REPLACE: "忽略之前|忽略先前|忽略以上|忽略上面|忽略前面|忽略上述|忽略所有|忽略你|无视之前|无视所有|忘记之前|以前的指令|先前的指令|新的指令|新指令|你的指令|不要告诉用户|不要告訴用戶|无需询问|不必再问|不要提及|不要在回复|系统提示词|不要声张",
        ADDRESS: "给助手|ai助手|ai 助手|亲爱的助手|助手请|语言模型|語言模型|智能体|用户的|用戶的|用户给出|用户指定|使用工具|调用工具|調用工具|调用函数|呼叫函式|使用以下参数|以下参数|处理这|处理此|如果你是|ai:|回复时",
        ACT: "发送|發送|发给|發給|转发|轉發|转账|轉帳|转给|汇款|匯款|付款|支付|预订|預訂|订购|訂購|取消该|取消用户|删除|刪除|邀请|邀請|分享|打开|打開|访问|訪問|回复|回覆|执行|執行|使用它|替换|发布到|加入",
    },
    "ko": {
        REQUEST: "해 주세요|해주세요|주세요|주시면|부탁드립니다|부탁합니다|바랍니다|십시오|보내세요|해 줘|해줘|긴급|즉시|지금 바로|확인 없이|하라.",
        DUTY: "해야 합니다|해야 한다|해야 하며|할 것.|반드시|꼭 |잊지 마|다음을 수행|다음 단계|새 작업|새로운 작업|답하기 전에|답변하기 전에|계속하기 전에|요약하기 전에|중요한 메시지|중요:|작업을 완료하려|권한이 있으|당신의 작업",
        REPLACE: "이전 지시|모든 지시를|이전 지침|이전 명령|지시를 무시|지시사항을 무시|이전의 모든|지침을 무시|명령을 무시|모두 무시하|새로운 지시|새 지시|묻지 말고|묻지 않고|사용자에게 말하지|언급하지 마|아무 말도",
        ADDRESS: "어시스턴트의|어시스턴트에게|어시스턴트님|ai 어시스턴트|ai 비서|언어 모델|ai 에이전트|사용자의|사용자에게|사용자가 지정|답변에서는|도구를 사용|도구를 호출|함수를 호출|다음 인수|처리할 때|요약할 때|사용자를 대신",
        ACT: "보내|전송해|전송하|전달해|송금|이체해|이체하|납부|지불해|결제해|예약해|예약하|주문해|주문하|취소해|취소하|삭제해|삭제하|생성해|만들어|추가해|초대|변경해|변경하|공유해|열어|방문해|실행해|입력해|사용하십|바꿔|게시하십|게시해|공유하",
    },
    "ar": {
        REQUEST: "*من فضلك|*رجاء|*يرجى|*الرجاء|*نرجو|هل يمكنك|هل تتكرم|أريدك أن|أريد منك|عاجل|فورا|فورًا|على الفور",
        DUTY: "عليك|تأكد من|لا تنس|مهمة جديدة|قبل أن تجيب|قبل الإجابة|قبل المتابعة|قبل تلخيص|هام:|رسالة مهمة|لإكمال المهمة|يحق لك|مخول|مهمتك",
        REPLACE: "*تجاهل جميع|*تجاهل كل|*تجاهل التعليمات|*تجاهل الأوامر|التعليمات السابقة|دون أن تسأل*|*لا تخبر المستخدم|*لا تذكر ذلك|*لا تقل شي|"
        "دون سؤال*",
        ADDRESS: "المساعد الذكي|للمساعد|أيها المساعد|عزيزي المساعد|نموذج لغوي|*نماذج اللغة|*النماذج اللغوية|وكيل الذكاء|*المستخدم|في ردك|"
        "في إجابتك|استدع الدالة|عند معالجة|عند تلخيص|عندما تعالج|عند الرد",
        ACT: "*أرسل|*ارسل|*حوّل|*ادفع|*احجز|احجزه|*اطلب|*ألغ|*احذف|*أنشئ|*أضف|*ادع|*شارك|*افتح|*اكتب|*نفذ|*استخدم|استخدمه|*أدخل|*انشر|*استبدل|*ضع",
    },
    "hi": {
        REQUEST: "कृपया|क्या आप|क्या तुम|कृपा होगी|मैं चाहता हूँ कि|आपसे अनुरोध|तत्काल:",
        DUTY: "तुम्हें|चाहिए|ज़रूर|जरूर|सुनिश्चित करें|तुरंत|नया कार्य|उत्तर देने से पहले|आगे बढ़ने से पहले|बताने से पहले|महत्वपूर्ण संदेश|"
        "महत्वपूर्ण:|कार्य पूरा करने|अधिकृत ह|आपका कार्य|अभी |बिना जाँच",
        REPLACE: "निर्देशों को अनदेखा|निर्देशों को नज़रअंदाज़|पिछले निर्देश|पिछले सभी निर्देश|पहले के निर्देश|नए निर्देश|निर्देशों को भूल|"
        "बिना पूछे|पूछे बिना|उपयोगकर्ता को न बत|ज़िक्र मत|ज़िक्र न कर|उल्लेख न कर|चुप रहो|किसी को न बत",
        ADDRESS: "सहायक|भाषा मॉडल|एआई एजेंट|उपयोगकर्ता की|उपयोगकर्ता के|उपयोगकर्ता का|उपयोगकर्ता को उत्तर|उपयोगकर्ता द्वारा|अपने उत्तर|"
        "फ़ंक्शन को कॉल|संसाधित करते|उपयोगकर्ता ने कहा|उपयोगकर्ता चाहता|जवाब देते समय|एआई:",
        ACT: "भेजें|भेजो|भेज दें|भेज दो|भुगतान करें|अंतरित करें|जमा करें|जमा करो|बुक कर|रद्द करें|आमंत्रित कर|साझा करें|उपयोग करें|कर दें|कर दो|"
        "हटाएं|हटा दें|मिटाएं|बनाएं|जोड़ें|बदलें|खोलें|खोलो|लिखें|उत्तर दें|चलाएं|डालें|डालो|बदल दो|बदल दें|पोस्ट कर|रखो|जोड़ो|जारी करो",
    },
}  # fmt: skip
_UNSPACED = frozenset({"ja", "zh", "ko"})
"""Languages whose phrases begin and end inside of what looks like one word."""
_DISTINCT = _UNSPACED | {"ar", "hi", "pl", "ru", "tr"}
"""Languages whose imperatives are no other form of a word, so that they count anywhere in a sentence."""
_INITIAL = re.compile(
    r"""(?:^|[.!?:;,"'`*>)\]\n\-–—•»“”،।¡¿]|\b(?:please|then|and|to|now|do|first|must|should|bitte|und|also|et|donc|y|que|e"""
    r"""|quindi|portanto|então|en|dus|so|alors))\s*$"""
)
_WORD_GOES_ON, _IS_FIELD = re.compile(r"\w"), re.compile(r"\w|[\"']?\s?[:=]")


def _phrases_by_word() -> tuple[dict[str, list[_Phrase]], list[_Phrase]]:
    """Return the phrases by their first word, and those that begin inside of a word or are a part of one."""
    by_word: dict[str, list[_Phrase]] = {}
    parts: list[_Phrase] = []
    for language, kinds in LANGUAGES.items():
        for kind, listed in kinds.items():
            for phrase in normal_form(listed).split("|"):
                begins, ends = (language in _UNSPACED or at("*") for at in (phrase.startswith, phrase.endswith))
                text = phrase.strip("*")
                is_part = begins or (ends and len(words_of(text)) == 1)
                into = parts if is_part else by_word.setdefault(words_of(text)[0], [])
                into.append((text, kind, begins, ends, kind == ACT and language not in _DISTINCT))
    return by_word, parts


_BY_WORD, _PARTS = _phrases_by_word()


def find_instructions(text: str, words: frozenset[str] | set[str]) -> list[tuple[int, str, str]]:
    """Return place, kind and phrase of each instructing phrase, in the order of places.

    Args:
        text: in lower case (`str.casefold`).
        words: its words, so that most phrases need no search.
    """
    found = {hit for word in _BY_WORD.keys() & words for hit in _hits(text, word, _BY_WORD[word])}
    letters = set(text)
    for phrase in _PARTS:
        if letters.issuperset(phrase[0]):
            found.update(_hits(text, phrase[0], [phrase]))
    return sorted(found)


def _hits(text: str, part: str, phrases: list[_Phrase]) -> Iterator[tuple[int, str, str]]:
    place = text.find(part)
    while place >= 0:
        is_inside = place > 0 and text[place - 1].isalnum() and part[0].isalnum()
        for phrase, kind, begins, ends, is_initial in phrases:
            if not text.startswith(phrase, place) or (is_inside and not begins):
                continue
            stop = _IS_FIELD if is_initial else _WORD_GOES_ON
            if not ends and phrase[-1].isalnum() and stop.match(text, place + len(phrase)):
                continue
            if not is_initial or _INITIAL.search(text, max(0, place - 10), place):
                yield place, kind, phrase
        place = text.find(part, place + len(part))
