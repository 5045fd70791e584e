<?php

/**
 * While the database is away.
 */

declare(strict_types=1);

?>
<h1>The presses have stopped</h1>
<p class="summary">We cannot reach our archive just now. Please try again in a moment.</p>
<p><a class="button" href="/">To the front page</a></p>
