<?php

/**
 * The page to sign in: $office, and the $fault of the try before.
 */

declare(strict_types=1);

$shown = $office->shownPassword();
?>
<h1>Office</h1>
<p class="summary">Where the paper is written.<?php if ($shown !== null) { ?> This is a demonstration; the password is <code><?= $e($shown) ?></code>.<?php } ?></p>
<form method="post" action="/office/">
<?php if ($fault !== '') { ?><p class="fault" role="alert"><?= $e($fault) ?></p><?php } ?>
<input type="hidden" name="token" value="<?= $e($office->token()) ?>">
<label>Password <input type="password" name="password" autocomplete="current-password" required autofocus></label>
<button>Sign in</button>
</form>
